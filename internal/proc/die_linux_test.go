package proc

import (
	"errors"
	"os/exec"
	"runtime"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
)

func init() {
	roles["die blocked"] = func([]string) int {
		runtime.LockOSThread()
		set := unix.Sigset_t{}
		set.Val[0] = 1<<(unix.SIGTERM-1) | 1<<(unix.SIGUSR1-1)
		if unix.PthreadSigmask(unix.SIG_BLOCK, &set, nil) != nil {
			return 94
		}
		DieOf(int(unix.SIGUSR1))
		return 95
	}
}

// A careless parent starts us with signals blocked.
func TestDieOfBlocked(t *testing.T) {
	cmd := viaExec(t, "die blocked")
	var ended *exec.ExitError
	if err := cmd.Run(); !errors.As(err, &ended) {
		t.Fatal(err)
	}
	if status := cmd.ProcessState.Sys().(syscall.WaitStatus); !status.Signaled() || status.Signal() != unix.SIGUSR1 {
		t.Errorf("%v, want death by %v", cmd.ProcessState, unix.SIGUSR1)
	}
}
