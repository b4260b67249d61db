package proc

import (
	"syscall"

	"golang.org/x/sys/unix"
)

// Of sys/procctl.h and sys/wait.h.
const (
	procReapAcquire = 2
	idTypePid       = 0 // P_PID
)

// adoptOrphans makes us the reaper of our descendants, see procctl(2). It may
// be refused, and all but that still works.
func adoptOrphans() {
	_, _, _ = unix.Syscall6(unix.SYS_PROCCTL, idTypePid, uintptr(unix.Getpid()), procReapAcquire, 0, 0, 0)
}

// dieWithParent has the system kill the child when we are killed.
func dieWithParent(attr *syscall.SysProcAttr) { attr.Pdeathsig = unix.SIGKILL }
