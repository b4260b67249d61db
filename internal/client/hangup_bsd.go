//go:build unix && !linux

package client

import (
	"golang.org/x/sys/unix"

	"github.com/wireguardrun/wireguardrun/internal/pipes"
)

// See hangup_linux.go for what these are; poll does not tell it here, kqueue
// does.

func waitWritersGone(h pipes.Handle) bool { return ended(h, unix.EVFILT_READ, nil) }
func waitReadersGone(h pipes.Handle) bool { return ended(h, unix.EVFILT_WRITE, nil) }
func writersGone(h pipes.Handle) bool     { return ended(h, unix.EVFILT_READ, &unix.Timespec{}) }
func readersGone(h pipes.Handle) bool     { return ended(h, unix.EVFILT_WRITE, &unix.Timespec{}) }

// ended waits until the other end of h is gone for the given filter, or until
// timeout.
func ended(h pipes.Handle, filter int, timeout *unix.Timespec) bool {
	if !hasOtherEnd(h) {
		return false
	}
	queue, err := unix.Kqueue()
	if err != nil {
		return false
	}
	defer func() { _ = unix.Close(queue) }()
	var change unix.Kevent_t
	// Edge-triggered: data or room alone must not make this a busy loop.
	unix.SetKevent(&change, int(h), filter, unix.EV_ADD|unix.EV_CLEAR)
	events := make([]unix.Kevent_t, 1)
	for first := []unix.Kevent_t{change}; ; {
		n, err := unix.Kevent(queue, first, events, timeout)
		switch {
		case err == unix.EINTR:
			continue
		case err != nil:
			return false
		case n > 0 && events[0].Flags&unix.EV_EOF != 0:
			return true
		case n == 0 && timeout != nil:
			return false
		}
		first = nil
	}
}
