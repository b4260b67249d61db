package proc

import (
	"runtime"
	"unsafe"

	"golang.org/x/sys/unix"
)

// setDefault gives sig its default action. os/signal can't: Go's runtime keeps
// its own handler for most signals. All zero is SIG_DFL without flags in every
// layout of the kernel's struct sigaction.
func setDefault(sig unix.Signal) error {
	var act [64]byte
	const setSize = 8 // of the kernel's sigset_t; 16 on MIPS, where this fails
	_, _, errno := unix.RawSyscall6(unix.SYS_RT_SIGACTION, uintptr(sig), uintptr(unsafe.Pointer(&act)), 0, setSize, 0, 0)
	if errno != 0 {
		return errno
	}
	return nil
}

// leaveNoCore keeps a second core file from being written: the child has left
// one already if it is of any use.
func leaveNoCore() error {
	return unix.Prctl(unix.PR_SET_DUMPABLE, 0, 0, 0, 0)
}

// raise sends sig to the thread that it runs on, which takes it before it does
// anything else. It returns only as process 1 of a namespace, which does not
// die of any signal of its own.
func raise(sig unix.Signal) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	// We may have been started with it blocked.
	var set unix.Sigset_t
	bits := 8 * int(unsafe.Sizeof(set.Val[0]))
	set.Val[(int(sig)-1)/bits] |= 1 << ((int(sig) - 1) % bits)
	_ = unix.PthreadSigmask(unix.SIG_UNBLOCK, &set, nil)
	_ = unix.Tgkill(unix.Getpid(), unix.Gettid(), sig)
}
