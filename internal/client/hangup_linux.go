package client

import (
	"golang.org/x/sys/unix"

	"github.com/wireguardrun/wireguardrun/internal/pipes"
)

// waitWritersGone waits until nobody can write to the other end of h any more.
// Bytes that were sent before may still be unread. It returns false where
// there is no such end: a file, the null device.
func waitWritersGone(h pipes.Handle) bool {
	return waitFor(h, unix.POLLRDHUP, unix.POLLHUP|unix.POLLRDHUP|unix.POLLERR)
}

// waitReadersGone waits until nobody can read what is written to h.
func waitReadersGone(h pipes.Handle) bool {
	return waitFor(h, 0, unix.POLLERR|unix.POLLHUP)
}

// writersGone is waitWritersGone without the wait.
func writersGone(h pipes.Handle) bool {
	return isSo(h, unix.POLLRDHUP, unix.POLLHUP|unix.POLLRDHUP|unix.POLLERR)
}

// readersGone is waitReadersGone without the wait.
func readersGone(h pipes.Handle) bool { return isSo(h, 0, unix.POLLERR|unix.POLLHUP) }

func isSo(h pipes.Handle, ask, want int16) bool {
	if !hasOtherEnd(h) {
		return false
	}
	fds := []unix.PollFd{{Fd: int32(h), Events: ask}}
	n, err := unix.Poll(fds, 0)
	return err == nil && n > 0 && fds[0].Revents&want != 0
}

func waitFor(h pipes.Handle, ask, want int16) bool {
	if !hasOtherEnd(h) {
		return false
	}
	fds := []unix.PollFd{{Fd: int32(h), Events: ask}}
	for {
		_, err := unix.Poll(fds, -1)
		switch {
		case err == unix.EINTR:
		case err != nil || fds[0].Revents&unix.POLLNVAL != 0:
			return false
		case fds[0].Revents&want != 0:
			return true
		}
	}
}
