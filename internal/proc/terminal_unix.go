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

func giveForeground(terminal pipes.Handle, group int) bool {
	front, err := unix.IoctlGetInt(int(terminal), unix.TIOCGPGRP)
	if err == nil && front == unix.Getpgrp() {
		return unix.IoctlSetPointerInt(int(terminal), unix.TIOCSPGRP, group) == nil
	}
	return err == nil && front == group
}
