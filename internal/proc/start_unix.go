//go:build unix

package proc

import (
	"fmt"
	"os"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/wireguardrun/wireguardrun/internal/pipes"
)

type process struct{ id int }

func start(c Command) (process, error) {
	list := files(c.Files)
	if high := aboveInherited(list); high != pipes.None {
		defer func() { _ = pipes.Close(high) }()
	}
	attr := &syscall.ProcAttr{
		Dir:   c.Dir,
		Env:   c.environ(func(n int) pipes.Handle { return pipes.Handle(n) }),
		Files: list,
		Sys:   &syscall.SysProcAttr{Setpgid: true},
	}
	if c.Terminal != pipes.None {
		attr.Sys.Foreground = true
		attr.Sys.Ctty = int(c.Terminal)
	}
	path, args := c.Path, c.Args
	if c.ListenPID {
		self, err := os.Executable()
		if err != nil {
			return process{}, fmt.Errorf("set LISTEN_PID: find our own program: %w", err)
		}
		path, args = self, append([]string{ListenStage, c.Path}, c.Args...)
	}
	pid, err := syscall.ForkExec(path, args, attr)
	if err == syscall.ENOEXEC {
		// A script without a #! line: execvp hands it to the shell.
		pid, err = syscall.ForkExec(shell, append([]string{shell, path}, args[1:]...), attr)
	}
	if err != nil {
		return process{}, &os.PathError{Op: "exec", Path: c.Path, Err: err}
	}
	return process{id: pid}, nil
}

const shell = "/bin/sh"

func files(handles []pipes.Handle) []uintptr {
	list := make([]uintptr, len(handles))
	for n, h := range handles {
		list[n] = uintptr(h)
		if h == pipes.None && IsInherited(n) {
			list[n] = uintptr(n)
		}
	}
	return list
}

// aboveInherited keeps ForkExec from overwriting a descriptor that the child
// inherits beside list: where it has to move some out of the way, it takes the
// numbers above the highest one that it was given, open or not, at most one for
// each entry and one for itself. If an inherited one is among them, an entry of
// list is replaced by a duplicate above all that are inherited, for the caller
// to close after the start; None when there is no need.
func aboveInherited(list []uintptr) pipes.Handle {
	given := len(list) - 1
	for _, fd := range list {
		given = max(given, int(fd))
	}
	inWay := false
	for n := given + 1; n <= given+1+len(list) && !inWay; n++ {
		inWay = isInherited(n)
	}
	if !inWay {
		return pipes.None
	}
	inherited := 0
	for _, n := range openDescriptors() {
		if n > inherited && isInherited(n) {
			inherited = n
		}
	}
	for i, fd := range list {
		if int(fd) < 0 {
			continue
		}
		high, err := unix.FcntlInt(fd, unix.F_DUPFD_CLOEXEC, inherited+1)
		if err != nil {
			break // no number is left up there; most starts move none
		}
		list[i] = uintptr(high)
		return pipes.Handle(high)
	}
	return pipes.None
}

func (p process) pid() int { return p.id }

func (p process) wait() (Status, error) {
	var ws unix.WaitStatus
	for {
		_, err := unix.Wait4(p.id, &ws, 0, nil)
		if err == unix.EINTR {
			continue
		}
		if err != nil {
			return Status{}, os.NewSyscallError("wait4", err)
		}
		if ws.Signaled() {
			return Status{Signal: int(ws.Signal())}, nil
		}
		return Status{Code: ws.ExitStatus()}, nil
	}
}

// signal sends to the group by the leader's id, which names it even after the
// leader has been waited for.
func (p process) signal(sig os.Signal) error {
	s, ok := sig.(syscall.Signal)
	if !ok {
		return fmt.Errorf("signal %v: not of this system", sig)
	}
	if err := unix.Kill(-p.id, s); err != nil {
		return fmt.Errorf("signal %v to process group %d: %w", sig, p.id, err)
	}
	return nil
}

// become returns only when the program can't be executed.
func become(c Command) (Status, error) {
	err := syscall.Exec(c.Path, c.Args, c.Env)
	if err == syscall.ENOEXEC {
		err = syscall.Exec(shell, append([]string{shell, c.Path}, c.Args[1:]...), c.Env)
	}
	return Status{}, &os.PathError{Op: "exec", Path: c.Path, Err: err}
}
