package proc

import (
	"os"
	"os/signal"
	"syscall"

	"github.com/wireguardrun/wireguardrun/internal/pipes"
)

// become stands by until c has ended. c is in our process group, so that keys
// reach it as if we were not there, and dies with us. It inherits all that we
// were meant to pass on.
func become(c Command) (Status, error) {
	// Kept from ending us before c; for us they mean nothing.
	events := make(chan os.Signal, 1)
	signal.Notify(events, os.Interrupt, syscall.SIGTERM)
	defer signal.Stop(events)

	c.Files = []pipes.Handle{pipes.Standard(0), pipes.Standard(1), pipes.Standard(2)}
	p, err := startWith(c, 0, inheritedAbove(len(c.Files)))
	if err != nil {
		return Status{}, err
	}
	return p.wait()
}

// inheritedAbove returns the entries of our own table from number n on; those
// that have been closed since are closed entries. It is never nil.
func inheritedAbove(n int) []entry {
	above := []entry{}
	for i, e := range inheritedTable() {
		if i < n {
			continue
		}
		if inherited, err := pipes.IsInherited(e.handle); err != nil || !inherited {
			e = newEntry(pipes.None)
		}
		above = append(above, e)
	}
	return above
}
