package main

import (
	"fmt"
	"os"
	"strings"
	"sync/atomic"
	"time"

	"github.com/rs/zerolog"

	"github.com/wireguardrun/wireguardrun/guard"
	"github.com/wireguardrun/wireguardrun/internal/handover"
	"github.com/wireguardrun/wireguardrun/internal/pipes"
	"github.com/wireguardrun/wireguardrun/internal/proc"
	"github.com/wireguardrun/wireguardrun/internal/relay"
)

// guarded is one run of a server: the result is our exit code, if we do not die
// of the signal that the server has died of.
func guarded(cfg config) int {
	l := &life{cfg: cfg, terminal: pipes.None, keeping: keeping{run: proc.NewRun()}}
	if cfg.Keeper {
		l.keeping.start() // beside all that comes before the server's start
	}
	// Before the rest, so that no signal is lost between here and the start.
	l.signals = proc.ListenForward()
	status := l.session()
	l.keeping.dismiss()
	l.keeping.wait(l.events)
	if status.Signal != 0 {
		proc.DieOf(status.Signal)
	}
	return childExitCode(status.Code, status.Signal)
}

// session is the one job: claim our own stdio, give the wire to the server,
// wait for its end, put everything back. The result is the server's status, or
// our exit code for an error that has been told.
func (l *life) session() proc.Status {
	cfg := l.cfg
	failed := func(err error) proc.Status { return proc.Status{Code: report(configuredSay(cfg), err)} }
	began := time.Now()

	if err := takeFromParent(); err != nil {
		return failed(err)
	}
	// Only now: before, descriptor 1 may have been a parent's diversion, which
	// is stderr.
	stderrIsWire := pipes.SharesFile(pipes.Standard(2), pipes.Standard(1))
	c, err := resolve(cfg, os.Environ())
	if err != nil {
		return failed(err)
	}
	sum, err := openSummary(cfg.Summary)
	if err != nil {
		return failed(err)
	}
	o, err := openOutlets(cfg, stderrIsWire)
	if err != nil {
		return failed(err)
	}
	l.say = o.say
	if len(cfg.Idle) > 0 {
		l.say.warn().Str(hintField, "leave out what is not needed: --wire=fds, or these").
			Msg(strings.Join(cfg.Idle, ", ") + ": without effect, since with --wire=fds nothing looks at the messages")
	}
	if cfg.Wire == wireFds {
		// A relay reads the terminal itself, so there the foreground stays ours.
		l.terminal = proc.ForegroundTerminal()
	}
	c.Env = proc.Environ(c.Env, []string{proc.MarkOf(l.keeping.run, c.Env)})
	wire, err := guard.Claim()
	if err != nil {
		o.started()
		o.close()
		return failed(err)
	}
	if err := wire.Err(); err != nil {
		tellDegraded(o.say, wire.State(), err)
	}
	l.in, l.out = pipes.Handle(wire.Descriptor(guard.In)), pipes.Handle(wire.Descriptor(guard.Out))
	if l.terminal != pipes.None {
		l.terminal = l.in
	}
	var status proc.Status
	launched := l.launch(c, wire, o)
	if launched == nil {
		status, err = l.serve(wire)
	}
	if err := wire.Release(); err != nil {
		o.say.warn().Str(zerolog.ErrorFieldName, inOneLine(err)).Msg("cannot put standard input and output back as they were")
	}
	if launched != nil {
		// Nothing has been on the wire yet, so this is said even where
		// stderr is the wire.
		o.close()
		return failed(launched)
	}
	if err != nil {
		o.say.fail(err)
		status = proc.Status{Code: exitFailure}
	}
	l.conclude(began, status, o, sum)
	return status
}

// serve sees to a server that has started, until what it has written is
// delivered.
func (l *life) serve(wire *guard.Wire) (proc.Status, error) {
	status, err := l.live()
	if l.relay == nil {
		l.lookUnread()
	} else {
		l.deliver(wire)
		if err == nil {
			err = l.wireErr
		}
	}
	l.takeForeground()
	return status, err
}

// conclude delivers the rest of the stray output, and tells what the session came
// to. sum is the file of the summary, which it closes, or nil.
func (l *life) conclude(began time.Time, status proc.Status, o *outlets, sum *os.File) {
	o.drain()
	l.account(o)
	if l.cfg.Summary == onStderr {
		_ = l.newSummary(began, status, o).write(o.messages)
	}
	o.flush()
	if sum != nil {
		if err := closeSummary(sum, l.newSummary(began, status, o)); err != nil {
			configuredSay(l.cfg).fail(err)
		}
	}
}

// launch starts the server, and the relay if there is one.
func (l *life) launch(c proc.Command, wire *guard.Wire, o *outlets) error {
	defer o.started()
	var e *ends
	var ours relayPipes
	var err error
	if l.cfg.Wire == wireFds {
		e, err = handedOver(l.cfg, wire, o)
	} else {
		e, ours, err = relayed(o, l.cfg.Wire == wireAuto)
	}
	if err != nil {
		return err
	}
	defer e.close()
	if err := l.start(c, e); err != nil {
		if l.cfg.Wire != wireFds {
			ours.close()
		}
		return err
	}
	if l.cfg.Wire != wireFds {
		l.startRelay(wire, ours, o)
	}
	return nil
}

func (l *life) start(c proc.Command, e *ends) error {
	if err := handOver(&c, e); err != nil {
		return err
	}
	if err := blocking(c.Files); err != nil {
		return err
	}
	c.Terminal = l.terminal
	c.ListenPID = proc.TakesListeners(c.Env)
	c.Tree = true
	l.keeping.await(l.say)
	p, err := proc.Start(c)
	if err != nil {
		return launchFailure(c.Args[0], c.Path, proc.Getenv(c.Env, "PATH"), err)
	}
	l.server, l.events, l.tree = p, p.Events(), proc.NewTree(p, l.keeping.run)
	l.ending.start = time.Now()
	l.keeping.guard(l.tree)
	l.own = proc.ObjectOf(e.stdin)
	if e.in != pipes.None {
		l.extra = []proc.Object{proc.ObjectOf(e.in), proc.ObjectOf(e.out)}
	}
	return nil
}

// startRelay starts to copy between the wire and the server's pipes, which are
// handed over.
func (l *life) startRelay(wire *guard.Wire, ours relayPipes, o *outlets) {
	l.failed = make(chan error, 2)
	var started atomic.Pointer[relay.Relay] // for what comes before Start has returned
	l.relay = relay.Start(relay.Options{
		Wire: wire, WireOut: l.out,
		Stdin: ours.stdin, Stdout: ours.stdout, In: ours.in, Out: ours.out,
		Frame:    l.cfg.Frame,
		EndStdin: l.cfg.Stdin == stdinNull,
		Stray: func(source string, p []byte) {
			r := started.Load()
			l.strayed(source, p, r == nil || r.Inbound() == 0)
			o.stray.Put(source, p)
		},
		Pace:   o.stray.Pace,
		Note:   l.note,
		Failed: func(err error) { l.failed <- err },
	})
	started.Store(l.relay)
}

// openStdin opens the server's descriptor 0, which the caller owns: the null
// device, or a lifeline, a pipe whose other end stays open, without data, for
// as long as this process lives.
func openStdin(lifeline bool) (pipes.Handle, error) {
	if !lifeline {
		if null, err := pipes.OpenNull(); err == nil {
			return null, nil
		}
		// Where there is no /dev, a pipe at its end reads the same.
	}
	r, w, err := pipes.Pipe()
	if err != nil {
		return pipes.None, fmt.Errorf("standard input for the server: %w", err)
	}
	if !lifeline {
		_ = pipes.Close(w)
	}
	return r, nil
}

// blocking makes the server's descriptors block, as any program expects of
// what it inherits. Those that we share are put back by the release.
func blocking(files []pipes.Handle) error {
	for n, h := range files {
		if h == pipes.None {
			continue
		}
		if err := pipes.SetBlocking(h); err != nil {
			return fmt.Errorf("make the server's descriptor %d blocking: %w", n, err)
		}
	}
	return nil
}

// takeFromParent deals with a wire that a wireguardrun above us handed down.
// If it is ours to use it becomes our own stdio; if the numbers are the wire
// of a session that is not ours, they are closed, so that our server does not
// get them. Either way our server is told of our hand-over alone.
func takeFromParent() error {
	rec, found, err := handover.FromEnv()
	handover.Clear()
	if !found || err != nil {
		return nil // what can't be read can't be checked or used
	}
	switch {
	case rec.Mode == handover.Fds && rec.Check(pipes.Standard(0), pipes.Standard(1)) == nil:
		return rec.PutOnStandard()
	case rec.PairHolds():
		return rec.ClosePair()
	}
	return nil
}

// tellDegraded says that the claim is not complete.
func tellDegraded(s *say, state guard.Status, err error) {
	s.warn().Str(zerolog.ErrorFieldName, inOneLine(err)).Stringer("in", state.In).Stringer("out", state.Out).
		Str(hintField, "the session goes on, and the server is guarded all the same").
		Msg("cannot move our own standard input and output off the wire")
}

// inOneLine is the text of errors that the guard has joined.
func inOneLine(err error) string { return strings.ReplaceAll(err.Error(), "\n", "; ") }
