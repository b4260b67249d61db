//go:build unix

package proc

import "golang.org/x/sys/unix"

func dieOf(sig int) {
	s := unix.Signal(sig)
	if leaveNoCore() != nil {
		return
	}
	// The action of KILL can't be set, and needs not.
	if s != unix.SIGKILL && setDefault(s) != nil {
		return
	}
	raise(s)
}
