package client

import (
	"fmt"

	"golang.org/x/sys/unix"

	"github.com/wireguardrun/wireguardrun/internal/pipes"
)

// activity counts the writes to the other end of a pipe and the reads of this
// one, by any process: a fast server leaves nothing unread, so what is unread
// doesn't show that bytes come. Without inotify it counts nothing.
type activity struct {
	fd    int
	count uint64
}

func watchActivity(h pipes.Handle) *activity {
	fd, err := unix.InotifyInit1(unix.IN_CLOEXEC | unix.IN_NONBLOCK)
	if err != nil {
		return &activity{fd: -1}
	}
	// A read at the end of the input is no event.
	if _, err := unix.InotifyAddWatch(fd, fmt.Sprintf("/proc/self/fd/%d", h), unix.IN_ACCESS|unix.IN_MODIFY); err != nil {
		_ = unix.Close(fd)
		return &activity{fd: -1}
	}
	return &activity{fd: fd}
}

// seen returns a number that changes with every read and write.
func (a *activity) seen() uint64 {
	var events [4096]byte
	for a.fd >= 0 {
		n, err := unix.Read(a.fd, events[:])
		if err == unix.EINTR {
			continue
		}
		if err != nil || n <= 0 {
			break
		}
		a.count += uint64(n)
	}
	return a.count
}

func (a *activity) close() {
	if a.fd >= 0 {
		_ = unix.Close(a.fd)
	}
}
