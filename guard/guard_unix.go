//go:build unix

package guard

import "github.com/wireguardrun/wireguardrun/internal/pipes"

// On Unix the standard streams are the descriptors 0 and 1, whatever variable
// of the language names them: dup2 moves them for captured os.Stdout values,
// native code and children alike.

func (s Stream) descriptor() handle { return handle(s) } // In is 0, Out is 1

func realSystem() system {
	return system{
		standard:    Stream.descriptor,
		duplicate:   func(s Stream) (handle, error) { return pipes.Duplicate(s.descriptor()) },
		open:        openDiversion,
		divert:      func(s Stream, d handle) error { return pipes.Redirect(d, int(s.descriptor())) },
		restore:     func(s Stream, saved handle) error { return pipes.Redirect(saved, int(s.descriptor())) },
		compare:     func(s Stream, h handle) pipes.Verdict { return pipes.Compare(s.descriptor(), h) },
		close:       pipes.Close,
		inherit:     func(h handle, on bool) error { return pipes.SetCloseOnExec(h, !on) },
		readModes:   func(fd int) (pipes.Modes, error) { return pipes.ReadModes(handle(fd)) },
		reinstate:   func(fd int, m pipes.Modes) error { return m.Reinstate(handle(fd)) },
		reachesWire: reachesWire,
	}
}
