//go:build unix

package pipes

import (
	"errors"
	"os"

	"golang.org/x/sys/unix"
)

type modes struct {
	nonblock bool
	terminal bool
	termios  unix.Termios
}

func readModes(h Handle) (modes, error) {
	flags, err := unix.FcntlInt(uintptr(h), unix.F_GETFL, 0)
	if err != nil {
		return modes{}, os.NewSyscallError("fcntl(F_GETFL)", err)
	}
	m := modes{nonblock: flags&unix.O_NONBLOCK != 0}
	if t, err := unix.IoctlGetTermios(int(h), ioctlGetTermios); err == nil {
		m.terminal, m.termios = true, *t
	}
	return m, nil
}

func reinstate(h Handle, want modes) error {
	now, err := readModes(h)
	if err != nil {
		return err
	}
	var errs []error
	if now.nonblock != want.nonblock {
		errs = append(errs, setNonblock(h, want.nonblock))
	}
	if now.terminal && want.terminal && now.termios != want.termios && inForeground(h) {
		err := unix.IoctlSetTermios(int(h), ioctlSetTermios, &want.termios)
		errs = append(errs, os.NewSyscallError("tcsetattr", err))
	}
	return errors.Join(errs...)
}

func setNonblock(h Handle, on bool) error {
	flags, err := unix.FcntlInt(uintptr(h), unix.F_GETFL, 0)
	if err == nil {
		flags &^= unix.O_NONBLOCK
		if on {
			flags |= unix.O_NONBLOCK
		}
		_, err = unix.FcntlInt(uintptr(h), unix.F_SETFL, flags)
	}
	return os.NewSyscallError("fcntl(F_SETFL)", err)
}

// inForeground reports whether setting the terminal h would pass without
// SIGTTOU: it is not our controlling terminal, or our group is in front.
func inForeground(h Handle) bool {
	group, err := unix.IoctlGetInt(int(h), unix.TIOCGPGRP)
	return err != nil || group == unix.Getpgrp()
}

func setBlocking(h Handle) error {
	flags, err := unix.FcntlInt(uintptr(h), unix.F_GETFL, 0)
	if err != nil || flags&unix.O_NONBLOCK == 0 {
		return os.NewSyscallError("fcntl(F_GETFL)", err)
	}
	return setNonblock(h, false)
}
