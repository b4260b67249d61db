package main

import (
	"errors"
	"fmt"

	"github.com/wireguardrun/wireguardrun/guard"
	"github.com/wireguardrun/wireguardrun/internal/handover"
	"github.com/wireguardrun/wireguardrun/internal/pipes"
	"github.com/wireguardrun/wireguardrun/internal/proc"
)

// ends are the server's ends of the pipes and files that it gets.
type ends struct {
	stdin, stdout, stderr pipes.Handle
	in, out               pipes.Handle // the extra pair; None if there is none
	mode                  handover.Mode
	owned                 []pipes.Handle // closed once the server has them
}

func (e *ends) own(h pipes.Handle) pipes.Handle {
	e.owned = append(e.owned, h)
	return h
}

func (e *ends) close() {
	for _, h := range e.owned {
		_ = pipes.Close(h)
	}
	e.owned = nil
}

// handedOver gives the server the client's own descriptors: --wire=fds.
func handedOver(cfg config, wire *guard.Wire, o *outlets) (*ends, error) {
	e := &ends{
		stdout: o.stdout, stderr: o.stderr, mode: handover.Fds,
		in: pipes.Handle(wire.Descriptor(guard.In)), out: pipes.Handle(wire.Descriptor(guard.Out)),
	}
	stdin, err := openStdin(cfg.Stdin == stdinLifeline)
	if err != nil {
		return nil, err
	}
	e.stdin = e.own(stdin)
	return e, nil
}

// relayPipes are our ends of the pipes between the relay and the server.
type relayPipes struct {
	stdin, stdout, in, out pipes.Handle
}

// outputSize is the size of the pipe for the server's standard output, where
// the system allows it: a write that fits is not torn by another writer.
const outputSize = 256 << 10

// relayed gives the server pipes of the relay: on 0 and 1, and with extra also
// on the extra pair.
func relayed(o *outlets, extra bool) (e *ends, ours relayPipes, err error) {
	e = &ends{stderr: o.stderr, in: pipes.None, out: pipes.None, mode: handover.Auto}
	ours = relayPipes{pipes.None, pipes.None, pipes.None, pipes.None}
	connect := func(pipe func() (theirs, ours pipes.Handle, err error), theirs, ours *pipes.Handle) {
		if err != nil {
			return
		}
		if *theirs, *ours, err = pipe(); err == nil {
			e.own(*theirs)
		}
	}
	connect(pipes.PipeToChild, &e.stdin, &ours.stdin)
	connect(pipes.PipeFromChild, &e.stdout, &ours.stdout)
	if extra {
		connect(pipes.PipeToChild, &e.in, &ours.in)
		connect(pipes.PipeFromChild, &e.out, &ours.out)
	}
	if err != nil {
		e.close()
		ours.close()
		return nil, ours, fmt.Errorf("pipes for the server: %w", err)
	}
	pipes.Grow(ours.stdout, outputSize)
	return e, ours, nil
}

func (p relayPipes) close() {
	for _, h := range []pipes.Handle{p.stdin, p.stdout, p.in, p.out} {
		if h != pipes.None {
			_ = pipes.Close(h)
		}
	}
}

// handOver gives c its descriptors, and the variables that tell of the pair.
func handOver(c *proc.Command, e *ends) error {
	if e.in == pipes.None {
		c.Files = []pipes.Handle{e.stdin, e.stdout, e.stderr}
		return nil
	}
	inID, outID, err := identities(e.in, e.out)
	if err != nil {
		return fmt.Errorf("identify the wire: %w", err)
	}
	stdinID, stdoutID, err := identities(e.stdin, e.stdout)
	if err != nil {
		return fmt.Errorf("identify the server's standard descriptors: %w", err)
	}
	inNumber, outNumber := proc.FreePair(c.Env)
	c.Files = make([]pipes.Handle, outNumber+1)
	for n := range c.Files {
		c.Files[n] = pipes.None
	}
	c.Files[0], c.Files[1], c.Files[2] = e.stdin, e.stdout, e.stderr
	c.Files[inNumber], c.Files[outNumber] = e.in, e.out
	c.MoreEnv = func(inChild func(int) pipes.Handle) []string {
		return handover.Record{
			Mode:   e.mode,
			In:     handover.End{Number: inNumber, Handle: inChild(inNumber), ID: inID},
			Out:    handover.End{Number: outNumber, Handle: inChild(outNumber), ID: outID},
			Stdin:  stdinID,
			Stdout: stdoutID,
		}.Environ()
	}
	return nil
}

// identities returns those of two of the server's descriptors.
func identities(a, b pipes.Handle) (idA, idB pipes.Identity, err error) {
	idA, errA := pipes.Identify(a)
	idB, errB := pipes.Identify(b)
	return idA, idB, errors.Join(errA, errB)
}
