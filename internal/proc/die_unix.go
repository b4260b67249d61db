//go:build unix

package proc

import (
	"time"

	"golang.org/x/sys/unix"
)

// DieOf ends this process by signal sig, so that whoever waits for it sees
// what became of the child. It returns when that is not possible.
func DieOf(sig int) {
	s := unix.Signal(sig)
	if leaveNoCore() != nil || setDefault(s) != nil {
		return
	}
	if unix.Kill(unix.Getpid(), s) != nil {
		return
	}
	// Another thread may be the one that takes the signal.
	time.Sleep(time.Second)
}
