//go:build unix

package e2e

import (
	"os"
	"os/exec"
	"syscall"

	"golang.org/x/sys/unix"
)

// setGroup makes the command lead a group of its own, so that killGroup
// reaches what it starts and no signal for the test run reaches it.
func setGroup(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
}

func startCommand(cmd *exec.Cmd) error { return cmd.Start() }

func killGroup(p *os.Process) { syscall.Kill(-p.Pid, syscall.SIGKILL) }

func statusOf(state *os.ProcessState) Status {
	if ws := state.Sys().(syscall.WaitStatus); ws.Signaled() {
		return Status{Signal: ws.Signal()}
	}
	return Status{Code: state.ExitCode()}
}

// socketPair is a connected pair; each end can read and write.
func socketPair() (child, ours *os.File, err error) {
	syscall.ForkLock.RLock() // no child started meanwhile may inherit an end
	fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM, 0)
	if err == nil {
		unix.CloseOnExec(fds[0])
		unix.CloseOnExec(fds[1])
	}
	syscall.ForkLock.RUnlock()
	if err != nil {
		return nil, nil, err
	}
	// Non-blocking, so that closing our end wakes its reader. The flag belongs
	// to this end alone; the child's stays blocking.
	if err := unix.SetNonblock(fds[1], true); err != nil {
		return nil, nil, err
	}
	return os.NewFile(uintptr(fds[0]), "socket"), os.NewFile(uintptr(fds[1]), "socket"), nil
}
