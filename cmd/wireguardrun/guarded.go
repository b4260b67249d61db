package main

import (
	"fmt"
	"os"

	"github.com/wireguardrun/wireguardrun/guard"
	"github.com/wireguardrun/wireguardrun/internal/handover"
	"github.com/wireguardrun/wireguardrun/internal/pipes"
	"github.com/wireguardrun/wireguardrun/internal/proc"
)

// guarded is the one job: claim our own stdio, give the wire to the server on
// extra descriptors, wait for its end, put everything back.
func guarded(cfg config) int {
	// First of all, so that no signal is lost between here and the start.
	signals := proc.ListenForward()

	if err := takeFromParent(); err != nil {
		return report(configuredSay(cfg), err)
	}
	// Only now: before, descriptor 1 may have been a parent's diversion, which
	// is stderr.
	stderrIsWire := pipes.SharesFile(pipes.Standard(2), pipes.Standard(1))
	c, err := resolve(cfg, os.Environ())
	if err != nil {
		return report(configuredSay(cfg), err)
	}
	o, err := openOutlets(cfg, stderrIsWire)
	if err != nil {
		return report(configuredSay(cfg), err)
	}
	terminal := proc.ForegroundTerminal()
	wire, err := guard.Claim()
	if err != nil {
		o.started()
		o.close()
		return report(configuredSay(cfg), err)
	}
	if err := wire.Err(); err != nil {
		tellDegraded(o.say, wire.State(), err)
	}
	if terminal != pipes.None {
		terminal = pipes.Handle(wire.Descriptor(guard.In))
	}
	l := &life{
		cfg: cfg, say: o.say, signals: signals, terminal: terminal,
		in: pipes.Handle(wire.Descriptor(guard.In)), out: pipes.Handle(wire.Descriptor(guard.Out)),
	}
	started := l.launch(c, wire, o)
	status, err := proc.Status{}, started
	if err == nil {
		status, err = l.live()
	}
	l.takeForeground()
	if err := wire.Release(); err != nil {
		o.say.warn().Err(err).Msg("cannot put standard input and output back as they were")
	}
	if started != nil {
		// Nothing has been on the wire yet, so this is said even where
		// stderr is the wire.
		o.close()
		return report(configuredSay(cfg), started)
	}
	if err != nil {
		o.say.fail(err)
		status = proc.Status{Code: exitFailure}
	}
	o.close()
	if status.Signal != 0 {
		proc.DieOf(status.Signal)
	}
	return childExitCode(status.Code, status.Signal)
}

// launch starts the server on the wire.
func (l *life) launch(c proc.Command, wire *guard.Wire, o *outlets) error {
	stdin, err := openStdin(l.cfg.Lifeline)
	if err != nil {
		return err
	}
	defer func() { _ = pipes.Close(stdin) }()
	defer o.started()
	run, mark := proc.NewRun(c.Env)
	c.Env = proc.Environ(c.Env, []string{mark}, nil)
	if err := handOver(&c, wire, stdin, o); err != nil {
		return err
	}
	if err := blocking(c.Files); err != nil {
		return err
	}
	c.Terminal = l.terminal
	c.ListenPID = proc.TakesListeners(c.Env)
	c.Tree = true
	p, err := proc.Start(c)
	if err != nil {
		return launchFailure(c.Args[0], c.Path, proc.Getenv(c.Env, "PATH"), err)
	}
	l.server, l.tree = p, proc.NewTree(p, run)
	return nil
}

// handOver completes c for the hand-over: the wire on two extra descriptors,
// the diversion on the standard ones, and the variables that tell of it.
func handOver(c *proc.Command, wire *guard.Wire, stdin pipes.Handle, o *outlets) error {
	in, out := pipes.Handle(wire.Descriptor(guard.In)), pipes.Handle(wire.Descriptor(guard.Out))
	inID, outID, err := identities(in, out)
	if err != nil {
		return fmt.Errorf("identify the wire: %w", err)
	}
	stdinID, stdoutID, err := identities(stdin, o.stdout)
	if err != nil {
		return fmt.Errorf("identify the diversion: %w", err)
	}
	inNumber, outNumber := proc.FreePair(c.Env)
	c.Files = make([]pipes.Handle, outNumber+1)
	for n := range c.Files {
		c.Files[n] = pipes.None
	}
	c.Files[0], c.Files[1], c.Files[2] = stdin, o.stdout, o.stderr
	c.Files[inNumber], c.Files[outNumber] = in, out
	c.MoreEnv = func(inChild func(int) pipes.Handle) []string {
		return handover.Record{
			Mode:   handover.Fds,
			In:     handover.End{Number: inNumber, Handle: inChild(inNumber), ID: inID},
			Out:    handover.End{Number: outNumber, Handle: inChild(outNumber), ID: outID},
			Stdin:  stdinID,
			Stdout: stdoutID,
		}.Environ()
	}
	return nil
}

// openStdin opens the server's descriptor 0, which the caller owns: the null
// device, or a lifeline, a pipe whose other end stays open, without data, for
// as long as this process lives.
func openStdin(lifeline bool) (pipes.Handle, error) {
	if !lifeline {
		return pipes.OpenNull()
	}
	r, _, err := pipes.Pipe()
	return r, err
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
	s.warn().Err(err).Stringer("in", state.In).Stringer("out", state.Out).
		Str(hintField, "the wire works; in our own process, the streams that are served in place are not protected").
		Msg("the claim is incomplete")
}
