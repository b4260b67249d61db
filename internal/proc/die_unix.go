//go:build unix

package proc

import (
	"time"

	"golang.org/x/sys/unix"
)

func dieOf(sig int) {
	s := unix.Signal(sig)
	if leaveNoCore() != nil {
		return
	}
	// The action of KILL can't be set, and needs not.
	if s != unix.SIGKILL && setDefault(s) != nil {
		return
	}
	if unix.Kill(unix.Getpid(), s) != nil {
		return
	}
	// Another thread may be the one that takes the signal.
	time.Sleep(time.Second)
}
