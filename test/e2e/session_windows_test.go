package e2e

import (
	"errors"
	"os"
	"os/exec"
	"syscall"

	"golang.org/x/sys/windows"
)

func setGroup(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{CreationFlags: syscall.CREATE_NEW_PROCESS_GROUP}
}

// startCommand tries again where a process has ended before its first
// instruction, which now and then happens under Wine when there is much to do.
func startCommand(cmd *exec.Cmd) error {
	const tries = 3
	for n := 1; ; n++ {
		again := exec.Cmd{
			Path: cmd.Path, Args: cmd.Args, Env: cmd.Env, Dir: cmd.Dir, SysProcAttr: cmd.SysProcAttr,
			Stdin: cmd.Stdin, Stdout: cmd.Stdout, Stderr: cmd.Stderr, Err: cmd.Err,
		}
		if err := cmd.Start(); !errors.Is(err, windows.ERROR_INTERNAL_ERROR) || n == tries {
			return err
		}
		*cmd = again // a command is started once only
	}
}

// killGroup kills the one process: Windows has no kill for a group.
func killGroup(p *os.Process) { p.Kill() }

func statusOf(state *os.ProcessState) Status { return Status{Code: state.ExitCode()} }

func socketPair() (child, ours *os.File, err error) {
	return nil, nil, errors.New("no socket pairs on this system")
}
