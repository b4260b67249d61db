package client

import (
	"os"

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
	return hasOtherEnd(h) && poll(int(h), ask, 0)&want != 0
}

func waitFor(h pipes.Handle, ask, want int16) bool {
	return hasOtherEnd(h) && waitForEvent(int(h), ask)&want != 0
}

// waitForEvent returns the events of fd, of those asked for and those that are
// always told, as soon as there is one.
func waitForEvent(fd int, ask int16) int16 {
	park(fd, ask)
	return poll(fd, ask, -1) // waits only where park could not
}

func poll(fd int, ask int16, timeout int) int16 {
	fds := []unix.PollFd{{Fd: int32(fd), Events: ask}}
	for {
		switch _, err := unix.Poll(fds, timeout); err {
		case unix.EINTR:
		case nil:
			return fds[0].Revents
		default:
			return 0
		}
	}
}

// park returns when fd has an event, and keeps no thread waiting for it: fd is put
// into an epoll set, which becomes readable by the event and is itself watched by
// Go's poller. Where that fails, it returns at once.
func park(fd int, ask int16) {
	set, err := unix.EpollCreate1(unix.EPOLL_CLOEXEC)
	if err != nil {
		return
	}
	_ = unix.SetNonblock(set, true) // by which os.NewFile knows what can be watched
	file := os.NewFile(uintptr(set), "epoll")
	defer func() { _ = file.Close() }()
	if unix.EpollCtl(set, unix.EPOLL_CTL_ADD, fd, &unix.EpollEvent{Events: uint32(ask)}) != nil {
		return
	}
	conn, err := file.SyscallConn()
	if err != nil {
		return
	}
	_ = conn.Read(func(set uintptr) bool {
		n, err := unix.EpollWait(int(set), make([]unix.EpollEvent, 1), 0)
		return n > 0 || err != nil && err != unix.EINTR
	})
}
