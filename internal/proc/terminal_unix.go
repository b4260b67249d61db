//go:build unix

package proc

import (
	"os"
	"os/signal"

	"golang.org/x/sys/unix"

	"github.com/wireguardrun/wireguardrun/internal/pipes"
)

func foregroundTerminal() pipes.Handle {
	pgrp := unix.Getpgrp()
	if pgrp != unix.Getpid() {
		return pipes.None
	}
	for fd := range 2 {
		front, err := unix.IoctlGetInt(fd, unix.TIOCGPGRP)
		if err != nil || front != pgrp {
			return pipes.None
		}
	}
	return 0
}

func takeForeground(terminal pipes.Handle) error {
	// We are in the background now, where this would stop us.
	if !signal.Ignored(unix.SIGTTOU) {
		signal.Ignore(unix.SIGTTOU)
		defer signal.Reset(unix.SIGTTOU)
	}
	err := unix.IoctlSetPointerInt(int(terminal), unix.TIOCSPGRP, unix.Getpgrp())
	return os.NewSyscallError("tcsetpgrp", err)
}
