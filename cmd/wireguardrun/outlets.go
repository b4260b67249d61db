package main

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/wireguardrun/wireguardrun/internal/pipes"
	"github.com/wireguardrun/wireguardrun/internal/stray"
)

// How long the end of a run waits for output that is not on the wire.
const (
	drainQuiet = 300 * time.Millisecond // without a byte from processes that outlive the server
	drainLimit = time.Second            // in all
	flushLimit = time.Second            // without a byte that a reader of stderr takes

	// bufferSize is how much of it waits for a reader that has stopped.
	bufferSize = 4 << 20
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
	say      *say
	messages io.Writer

	// stray takes what the relay does not let through. It is nil without a
	// relay; with one, stdout is None.
	stray stray.Sink

	lookalike atomic.Bool // the server's stderr has had text that looks like a message

	pumps []*stray.Pump
	sinks []stray.Sink // in the order to close them
}

// openOutlets opens what cfg and the kind of our stderr call for. stderrIsWire
// says that stderr is the wire too, so that neither the server nor we may print
// there.
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
	switch {
	case stderrIsWire:
		o.messages = io.Discard
	case direct && cfg.Wire == wireFds:
		o.messages = stderrWriter{} // a relay may not wait for a terminal, either
	default:
		sink, err := stray.NewStderr(ours, stray.Options{Capacity: bufferSize, Gap: gapNotice(cfg)})
		if err != nil {
			return fmt.Errorf("standard error: %w", err)
		}
		o.sinks = append(o.sinks, sink)
		behind, o.messages = sink, sink
	}
	o.say = newSay(o.messages, cfg.LogLevel, cfg.LogFormat)

	sink, err := o.strayStdout(cfg, behind)
	if err != nil {
		return err
	}
	toFile := stderrIsWire && cfg.Stray == strayFile
	switch {
	case direct:
		o.stderr = ours
	case !stderrIsWire:
		o.stderr, err = o.pump("stderr", watched{behind, &o.lookalike})
	case toFile:
		o.stderr, err = o.pump("stderr", sink)
	default:
		o.stderr, err = o.null("stderr")
	}
	if err != nil {
		return err
	}
	switch {
	case cfg.Wire != wireFds:
		if o.stray = sink; sink == nil {
			o.stray = &stray.Null{}
			o.sinks = append(o.sinks, o.stray)
		}
	case cfg.Stray == strayStderr, toFile:
		o.stdout = o.stderr // in one pipe the order stays
	case sink == nil:
		o.stdout, err = o.null("stdout")
	default:
		o.stdout, err = o.pump("stdout", sink)
	}
	return err
}

// strayStdout returns where stray output on the server's stdout goes, nil for
// nowhere.
func (o *outlets) strayStdout(cfg config, behind stray.Sink) (stray.Sink, error) {
	var sink stray.Sink
	switch cfg.Stray {
	case strayNull:
		return nil, nil
	case strayLog:
		sink = stray.NewLog(o.logStray, behind)
	case strayFile:
		if err := notTheWire("--stray", cfg.StrayFile); err != nil {
			return nil, err
		}
		file, err := stray.NewFile(cfg.StrayFile, cfg.StrayMax, stray.Options{Capacity: bufferSize, Gap: gapNotice(cfg), Failed: o.strayFileFailed})
		if err != nil {
			return nil, fileFailure("--stray", err)
		}
		sink = file
	default:
		return behind, nil
	}
	o.sinks = append([]stray.Sink{sink}, o.sinks...)
	return sink, nil
}

// null is where the server's output goes nowhere: the null device or, where
// there is no /dev, a pump.
func (o *outlets) null(source string) (pipes.Handle, error) {
	h, err := pipes.OpenNull()
	if err != nil {
		return o.pump(source, &stray.Null{})
	}
	o.owned = append(o.owned, h)
	return h, nil
}

// notTheWire returns an error if the file of a flag is our standard output. A
// terminal may be: what is printed there is for people.
func notTheWire(flag, path string) error {
	file, err := os.Stat(path)
	if err != nil || file.Mode()&os.ModeCharDevice != 0 {
		return nil // what is wrong with it is found by who opens it
	}
	if wire, err := os.Stdout.Stat(); err != nil || !os.SameFile(file, wire) {
		return nil
	}
	return withHint(fmt.Errorf("%s: %s is standard output, which is for the client's messages alone", flag, path), "give another file")
}

// pump makes a pipe whose write end is for the server and carries what comes
// out of it into sink.
func (o *outlets) pump(source string, sink stray.Sink) (pipes.Handle, error) {
	w, r, err := pipes.PipeFromChild()
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
	hint := "see to the file or its directory; nothing else is lost"
	if errors.Is(err, syscall.ENOSPC) {
		hint = "make room on the disk; nothing else is lost"
	}
	o.say.fail(withHint(fmt.Errorf("stray output is lost: %w", err), hint))
}

// gapNotice returns what makes the message that stands where bytes are missing.
func gapNotice(cfg config) func(dropped uint64) []byte {
	return func(dropped uint64) []byte {
		var text bytes.Buffer
		newSay(&text, cfg.LogLevel, cfg.LogFormat).warn().Uint64("bytes", dropped).
			Msg("output of the server is missing here: nobody read it in time")
		return text.Bytes()
	}
}

// started closes our copies of what only the server needs.
func (o *outlets) started() {
	for _, h := range o.owned {
		_ = pipes.Close(h)
	}
	o.owned = nil
}

// close ends all at once: what has come so far is delivered.
func (o *outlets) close() {
	o.drain()
	o.flush()
}

// drain reads what the server side has printed, after the server's end.
func (o *outlets) drain() {
	var drained sync.WaitGroup
	for _, p := range o.pumps {
		drained.Go(func() { p.Drain(drainQuiet, drainLimit) })
	}
	drained.Wait()
}

// flush delivers what was read, all of it, as long as somebody takes it.
func (o *outlets) flush() {
	for _, s := range o.sinks {
		for taken := s.Progress(); !s.Flush(time.Now().Add(flushLimit)); {
			now := s.Progress()
			if now == taken {
				break // the reader has stopped
			}
			taken = now
		}
		s.Close(time.Now())
	}
}

// totals adds up what all sinks have seen.
func (o *outlets) totals() stray.Totals {
	sum := stray.Totals{Sources: map[string]stray.Count{}}
	for _, s := range o.sinks {
		t := s.Totals()
		sum.Dropped += t.Dropped
		for source, c := range t.Sources {
			sum.Sources[source] = c
		}
	}
	return sum
}

// watched is a sink that looks for text that looks like a message.
type watched struct {
	stray.Sink
	seen *atomic.Bool
}

func (w watched) Put(source string, p []byte) {
	if !w.seen.Load() && looksLikeMessage(p) {
		w.seen.Store(true)
	}
	w.Sink.Put(source, p)
}
