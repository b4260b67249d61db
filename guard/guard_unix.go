//go:build unix

package guard

import (
	"errors"

	"github.com/wireguardrun/wireguardrun/internal/pipes"
)

// On Unix the standard streams are the descriptors 0 and 1, whatever variable
// of the language names them: dup2 moves them for captured os.Stdout values,
// native code and children alike.

func (s Stream) descriptor() handle { return handle(s) } // In is 0, Out is 1

func realSystem() system {
	return system{
		standard:    Stream.descriptor,
		duplicate:   duplicate,
		open:        open,
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

func duplicate(s Stream) (handle, error) {
	if err := fill(int(s)); err != nil {
		return none, err
	}
	return pipes.Duplicate(s.descriptor())
}

func open(what diversion) (d, hold handle, err error) {
	if what.kind == toStderr {
		if err := fill(2); err != nil {
			return none, none, err
		}
	}
	return openDiversion(what)
}

// fill points descriptor n at the null device if it is closed, as Go's runtime
// does at the start: else the next file that the process opens would be the
// wire, or get what is printed.
func fill(n int) error {
	if h := pipes.Standard(n); pipes.Compare(h, h) != pipes.Closed {
		return nil
	}
	null, err := pipes.OpenNull()
	if err != nil {
		return err
	}
	return errors.Join(pipes.Redirect(null, n), pipes.Close(null))
}
