package pipes

import (
	"fmt"

	"golang.org/x/sys/unix"
)

const (
	ioctlGetTermios = unix.TCGETS
	ioctlSetTermios = unix.TCSETS
	ioctlUnread     = unix.TIOCINQ // FIONREAD
)

// atomicWrite is how much poll's POLLOUT promises that a blocking pipe takes
// without waiting: PIPE_BUF (pipe(7)).
const atomicWrite = 4096

func pipeCloexec() (fds [2]int, err error) {
	err = unix.Pipe2(fds[:], unix.O_CLOEXEC)
	return fds, err
}

// dup2 by dup3, since several Linux architectures have no dup2. dup3 refuses
// equal numbers, which dup2 takes as a check that the descriptor is open.
func dup2(from, to int) error {
	if from == to {
		_, err := unix.FcntlInt(uintptr(from), unix.F_GETFD, 0)
		return err
	}
	return unix.Dup3(from, to, 0)
}

func grow(h Handle, size int) { _, _ = unix.FcntlInt(uintptr(h), unix.F_SETPIPE_SZ, size) }

func peek(h Handle) Handle {
	fd, err := unix.Open(fmt.Sprintf("/proc/self/fd/%d", h), unix.O_RDONLY|unix.O_NONBLOCK|unix.O_CLOEXEC, 0)
	if err != nil {
		return None
	}
	return Handle(fd)
}
