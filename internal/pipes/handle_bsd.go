//go:build unix && !linux

package pipes

import (
	"syscall"

	"golang.org/x/sys/unix"
)

const (
	ioctlGetTermios = unix.TIOCGETA
	ioctlSetTermios = unix.TIOCSETA
	ioctlUnread     = 0x4004667f // FIONREAD of sys/filio.h
)

// atomicWrite is how much poll's POLLOUT promises that a blocking pipe takes
// without waiting: POSIX's least PIPE_BUF, which macOS and the BSDs have.
const atomicWrite = 512

// pipeCloexec holds the fork lock because macOS has no pipe2: between the two
// calls a fork elsewhere in the process would pass the descriptors on.
func pipeCloexec() (fds [2]int, err error) {
	syscall.ForkLock.RLock()
	defer syscall.ForkLock.RUnlock()
	if err := unix.Pipe(fds[:]); err != nil {
		return fds, err
	}
	unix.CloseOnExec(fds[0])
	unix.CloseOnExec(fds[1])
	return fds, nil
}

func dup2(from, to int) error { return unix.Dup2(from, to) }

func grow(Handle, int) {}

func peek(Handle) Handle { return None }
