package main

import (
	"errors"
	"fmt"
	"io"
	"sync"
	"time"

	"github.com/wireguardrun/wireguardrun/internal/pipes"
	"github.com/wireguardrun/wireguardrun/internal/stray"
)

// How long the end of a run waits for output that is not on the wire.
const (
	drainQuiet = 300 * time.Millisecond // without a byte from processes that outlive the server
	drainLimit = time.Second            // in all
	flushLimit = time.Second            // for a slow reader of stderr
)

// outlets is where the server's descriptors 1 and 2 lead, and what carries it
// there.
type outlets struct {
	// The server's descriptors. Those in owned are closed by started; the
	// others are ours for good.
	stdout, stderr pipes.Handle
	owned          []pipes.Handle

	// say writes our own messages to the same place as the server's stderr,
	// by the same writer, so that lines do not mix.
	say *say

	pumps []*stray.Pump
	sinks []stray.Sink // in the order to close them
}

// openOutlets decides by cfg and by what our stderr is. stderrIsWire: then
// neither the server nor we may print there.
func openOutlets(cfg config, stderrIsWire bool) (*outlets, error) {
	o := &outlets{stdout: pipes.None, stderr: pipes.None}
	if err := o.open(cfg, stderrIsWire); err != nil {
		o.started()
		o.close()
		return nil, err
	}
	return o, nil
}

func (o *outlets) open(cfg config, stderrIsWire bool) error {
	ours := pipes.Standard(2)
	// A terminal or a file can be given to the server as it is. Anything
	// else may stall or go away, and would take the server with it.
	direct := !stderrIsWire && (pipes.IsTerminal(ours) || pipes.NeverBlocks(ours))

	var behind stray.Sink // what carries lines to our stderr
	var messages io.Writer
	switch {
	case stderrIsWire:
		messages = io.Discard
	case direct:
		messages = stderrWriter{}
	default:
		sink, err := stray.NewStderr(ours, stray.Options{Gap: gapNotice})
		if err != nil {
			return fmt.Errorf("standard error: %w", err)
		}
		o.sinks = append(o.sinks, sink)
		behind, messages = sink, sink
	}
	o.say = newSay(messages, cfg.LogLevel, cfg.LogFormat)

	var err error
	switch {
	case direct:
		o.stderr = ours
	case stderrIsWire && cfg.Stray != strayFile:
		o.stderr, err = o.null()
	case !stderrIsWire:
		o.stderr, err = o.pump("stderr", behind)
	}
	if err != nil {
		return err
	}

	switch cfg.Stray {
	case strayStderr:
		o.stdout = o.stderr
	case strayNull:
		o.stdout, err = o.null()
	case strayLog:
		log := stray.NewLog(o.logStray, behind)
		o.sinks = append([]stray.Sink{log}, o.sinks...)
		o.stdout, err = o.pump("stdout", log)
	case strayFile:
		var file *stray.File
		file, err = stray.NewFile(cfg.StrayFile, cfg.StrayMax, stray.Options{Gap: gapNotice, Failed: o.strayFileFailed})
		if err != nil {
			return err
		}
		o.sinks = append([]stray.Sink{file}, o.sinks...)
		o.stdout, err = o.pump("stdout", file)
		if stderrIsWire {
			o.stderr = o.stdout
		}
	}
	return err
}

func (o *outlets) null() (pipes.Handle, error) {
	h, err := pipes.OpenNull()
	if err != nil {
		return pipes.None, err
	}
	o.owned = append(o.owned, h)
	return h, nil
}

// pump makes a pipe whose write end is for the server and carries what comes
// out of it into sink.
func (o *outlets) pump(source string, sink stray.Sink) (pipes.Handle, error) {
	r, w, err := pipes.Pipe()
	if err != nil {
		return pipes.None, fmt.Errorf("pipe for the server's %s: %w", source, err)
	}
	o.owned = append(o.owned, w)
	conn := pipes.NewConn(r)
	o.pumps = append(o.pumps, stray.Start(source, conn, sink, func() {
		conn.Retire(func() { _ = pipes.Close(r) })
	}))
	return w, nil
}

func (o *outlets) logStray(line []byte, source string) {
	o.say.info().Str("source", source).Bytes("line", line).Msg("stray output")
}

func (o *outlets) strayFileFailed(err error) {
	o.say.fail(withHint(fmt.Errorf("stray output is lost: %w", err), "is the disk full?"))
}

func gapNotice(dropped uint64) []byte {
	return fmt.Appendf(nil, "wireguardrun: %d bytes of stray output dropped: nobody read them in time\n", dropped)
}

// started closes our copies of what only the server needs.
func (o *outlets) started() {
	for _, h := range o.owned {
		_ = pipes.Close(h)
	}
	o.owned = nil
}

// close delivers what the server side has printed, as far as that is possible
// in bounded time, after the server's end.
func (o *outlets) close() {
	var drained sync.WaitGroup
	for _, p := range o.pumps {
		drained.Go(func() { p.Drain(drainQuiet, drainLimit) })
	}
	drained.Wait()
	deadline := time.Now().Add(flushLimit)
	for _, s := range o.sinks {
		s.Close(deadline)
	}
}

// identities returns those of the server's descriptors 0 and 1.
func identities(stdin, stdout pipes.Handle) (in, out pipes.Identity, err error) {
	in, errIn := pipes.Identify(stdin)
	out, errOut := pipes.Identify(stdout)
	return in, out, errors.Join(errIn, errOut)
}
