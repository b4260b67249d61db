//go:build unix && !linux

package client

import (
	"os"

	"golang.org/x/sys/unix"

	"github.com/wireguardrun/wireguardrun/internal/pipes"
)

// parentEnd returns a channel that is closed when our parent pid has ended, or
// nil when it can't be watched.
func parentEnd(pid int) <-chan struct{} {
	if pid <= 0 {
		return nil
	}
	queue, err := unix.Kqueue()
	if err != nil {
		return nil
	}
	var change unix.Kevent_t
	unix.SetKevent(&change, pid, unix.EVFILT_PROC, unix.EV_ADD|unix.EV_ONESHOT)
	change.Fflags = unix.NOTE_EXIT
	if _, err := unix.Kevent(queue, []unix.Kevent_t{change}, nil, nil); err != nil || os.Getppid() != pid {
		_ = unix.Close(queue)
		return nil
	}
	gone := make(chan struct{})
	go func() {
		defer func() { _ = unix.Close(queue) }()
		events := make([]unix.Kevent_t, 1)
		for {
			n, err := unix.Kevent(queue, nil, events, nil)
			if err == nil && n > 0 {
				close(gone)
				return
			}
			if err != nil && err != unix.EINTR {
				return
			}
		}
	}()
	return gone
}

// holdsOtherEnd can't be found out here without reading kernel memory.
func holdsOtherEnd(int, pipes.Handle, pipes.Handle) (known, holds bool) { return false, false }
