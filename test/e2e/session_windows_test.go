package e2e

import (
	"errors"
	"os"
	"os/exec"
	"syscall"
)

func setGroup(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{CreationFlags: syscall.CREATE_NEW_PROCESS_GROUP}
}

// killGroup kills the one process: Windows has no kill for a group.
func killGroup(p *os.Process) { p.Kill() }

func statusOf(state *os.ProcessState) Status { return Status{Code: state.ExitCode()} }

func socketPair() (child, ours *os.File, err error) {
	return nil, nil, errors.New("no socket pairs on this system")
}
