package proc

import (
	"syscall"

	"golang.org/x/sys/unix"
)

// adoptOrphans makes descendants whose parent ends our children instead of
// init's: only so is the whole tree known. It may be refused, and all but that
// still works.
func adoptOrphans() { _ = unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) }

// dieWithParent has the system kill the child when we are killed.
func dieWithParent(attr *syscall.SysProcAttr) { attr.Pdeathsig = unix.SIGKILL }
