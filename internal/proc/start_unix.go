//go:build unix

package proc

import (
	"bytes"
	"fmt"
	"os"
	"runtime"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/wireguardrun/wireguardrun/internal/pipes"
)

type process struct {
	id   int
	what chan Event
}

func start(c Command) (process, error) {
	if c.Tree {
		adoptOrphans()
	}
	p := process{what: make(chan Event, 64)}
	started := make(chan error)
	go func() {
		// The parent-death signal comes when this thread ends, so it has to
		// live as long as the child (https://go.dev/issue/27505): it waits.
		runtime.LockOSThread()
		var err error
		p.id, err = forkExec(c)
		started <- err
		if err == nil {
			wait(p.id, c.Tree, p.what)
		}
	}()
	if err := <-started; err != nil {
		return process{}, err
	}
	return p, nil
}

func forkExec(c Command) (pid int, err error) {
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
	if c.Tree {
		dieWithParent(attr.Sys)
	}
	if c.Terminal != pipes.None {
		attr.Sys.Foreground = true
		attr.Sys.Ctty = int(c.Terminal)
	}
	path, args := c.Path, c.Args
	if c.ListenPID {
		self, err := ownProgram()
		if err != nil {
			return 0, fmt.Errorf("set LISTEN_PID: find our own program: %w", err)
		}
		path, args = self, append([]string{ListenStage, c.Path}, c.Args...)
	}
	pid, err = syscall.ForkExec(path, args, attr)
	if err == syscall.ENOEXEC && isScript(path, c.Dir) {
		pid, err = syscall.ForkExec(shell, append([]string{shell, path}, args[1:]...), attr)
	}
	if err != nil {
		return 0, &os.PathError{Op: "exec", Path: c.Path, Err: err}
	}
	return pid, nil
}

const shell = "/bin/sh"

// isScript reports whether a file that the system can't execute may be a
// script without a #! line, which execvp hands to the shell. A program for
// another system has a zero byte soon, and is not for the shell to try.
func isScript(path, dir string) bool {
	f, err := os.Open(inDir(path, dir))
	if err != nil {
		return false
	}
	defer func() { _ = f.Close() }()
	var start [256]byte
	n, _ := f.Read(start[:])
	return bytes.IndexByte(start[:n], 0) < 0
}

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

// wait is the only place that waits for children. It tells what happens to the
// child and, if all is true, takes every other child off the system's list, and
// returns when there is none left.
func wait(child int, all bool, what chan<- Event) {
	defer close(what)
	target := child
	if all {
		target = -1
	}
	for {
		var ws unix.WaitStatus
		pid, err := unix.Wait4(target, &ws, unix.WUNTRACED, nil)
		switch {
		case err == unix.EINTR:
		case err != nil:
			return
		case ws.Stopped():
			if pid == child {
				what <- Event{Kind: Stopped, Signal: int(ws.StopSignal())}
			}
		case pid != child:
			what <- Event{Kind: OtherExited, Pid: pid}
		default:
			what <- Event{Kind: Exited, Status: statusOf(ws)}
			if !all {
				return
			}
		}
	}
}

func statusOf(ws unix.WaitStatus) Status {
	if ws.Signaled() {
		return Status{Signal: int(ws.Signal())}
	}
	return Status{Code: ws.ExitStatus()}
}

func (p process) events() <-chan Event { return p.what }

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
	if err == syscall.ENOEXEC && isScript(c.Path, "") {
		err = syscall.Exec(shell, append([]string{shell, c.Path}, c.Args[1:]...), c.Env)
	}
	return Status{}, &os.PathError{Op: "exec", Path: c.Path, Err: err}
}
