// Package proc starts a server, passes signals on to it and waits for its end.
// What the systems do differently is in the files that are named after them.
package proc

import (
	"os"

	"github.com/wireguardrun/wireguardrun/internal/pipes"
)

// Command is a program that is ready to start.
type Command struct {
	Path string   // what to execute, from Look
	Args []string // the whole argument vector; Args[0] is the name as given
	Dir  string   // working directory; "" is ours
	Env  []string // the whole environment, as NAME=VALUE

	// MoreEnv, if not nil, returns variables that depend on what the child's
	// descriptors are in the child: inChild gives the handle of a number.
	MoreEnv func(inChild func(number int) pipes.Handle) []string

	// Files are the child's descriptors by number. They are borrowed, and
	// the child gets duplicates. None stands for the descriptor that this
	// process inherited under the same number, if any; inherited ones above
	// the end of Files are passed on in any case (Unix).
	Files []pipes.Handle

	// Terminal is a terminal of ours whose foreground is given to the
	// child's process group, or None. Borrowed.
	Terminal pipes.Handle

	// ListenPID sets LISTEN_PID to the child's own process id, for a server
	// that takes over the sockets which were passed to us (Unix).
	ListenPID bool

	// Tree makes this process answer for all that descends from the child:
	// it dies with us, its orphans become our children (Linux, FreeBSD), and
	// everything that ends is waited for, so nothing else in this process may
	// wait for children.
	Tree bool
}

// Process is a child that was started. It leads a process group of its own.
type Process struct{ process }

func (c Command) environ(inChild func(int) pipes.Handle) []string {
	if c.MoreEnv == nil {
		return c.Env
	}
	return Environ(c.Env, c.MoreEnv(inChild))
}

// Start starts c.
func Start(c Command) (*Process, error) {
	p, err := start(c)
	if err != nil {
		return nil, err
	}
	return &Process{p}, nil
}

// Pid returns the child's process id.
func (p *Process) Pid() int { return p.pid() }

// Events returns what happens to the child, in order. The channel is closed
// when nothing can happen any more.
func (p *Process) Events() <-chan Event { return p.events() }

// Event is something that happened to a child.
type Event struct {
	Kind   EventKind
	Status Status // of Exited
	Signal int    // of Stopped: what stopped it
	Pid    int    // of OtherExited
}

// EventKind tells events apart.
type EventKind uint8

const (
	Exited      EventKind = iota + 1 // the child has ended
	Stopped                          // a signal has stopped the child
	OtherExited                      // another child of ours has ended, an adopted one or the keeper
)

// Signal sends sig to the child's process group.
func (p *Process) Signal(sig os.Signal) error { return p.signal(sig) }

// Status is how a child ended.
type Status struct {
	Code   int // exit status: 8 bits on Unix, 32 on Windows; 0 after a signal
	Signal int // number of the signal that ended it, or 0
}

// Become replaces this process by c, whose Files are not looked at: it gets the
// descriptors that we were started with and those that are standard now. Where
// a system can't replace a process, c is run to its end, and its status
// returned.
func Become(c Command) (Status, error) { return become(c) }
