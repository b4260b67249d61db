//go:build unix

package proc

import (
	"fmt"
	"io"
	"os"
	"syscall"
	"testing"

	"github.com/creack/pty"
	"golang.org/x/sys/unix"

	"github.com/wireguardrun/wireguardrun/internal/pipes"
)

func init() {
	// Reports on standard error, since 0 and 1 may be the terminal.
	roles["terminal"] = func(args []string) int {
		terminal := ForegroundTerminal()
		if args[0] == "none" {
			if terminal != pipes.None {
				fmt.Fprintf(os.Stderr, "terminal %d", terminal)
			}
			return 0
		}
		if terminal != 0 {
			fmt.Fprintf(os.Stderr, "terminal %d", terminal)
			return 0
		}
		front := func() int {
			group, err := unix.IoctlGetInt(0, unix.TIOCGPGRP)
			if err != nil {
				return -1
			}
			return group
		}
		r, w, err := pipes.Pipe()
		if err != nil {
			return 1
		}
		c := inShell("read x <&3")
		c.Files = []pipes.Handle{0, 1, 2, r}
		c.Terminal = terminal
		p, err := Start(c)
		if err != nil {
			fmt.Fprint(os.Stderr, err)
			return 0
		}
		if front() != p.Pid() {
			fmt.Fprintf(os.Stderr, "group %d has the terminal, not %d", front(), p.Pid())
		}
		_ = pipes.Close(w)
		if _, err := p.Wait(); err != nil {
			fmt.Fprint(os.Stderr, err)
		}
		if err := TakeForeground(terminal); err != nil || front() != os.Getpid() {
			fmt.Fprintf(os.Stderr, "%v, group %d has the terminal then, not %d", err, front(), os.Getpid())
		}
		return 0
	}
}

// The child gets the foreground where we lead the foreground group of our
// terminal, and only there; afterwards we have it again.
func TestForeground(t *testing.T) {
	client, terminal, err := pty.Open()
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _, _ = client.Close(), terminal.Close() }()
	controlling := &syscall.SysProcAttr{Setsid: true, Setctty: true, Ctty: 0}
	for _, test := range []struct {
		name, want  string
		attr        *syscall.SysProcAttr
		stdin, both bool
	}{
		{"leads, on the terminal", "given", controlling, true, true},
		{"output is no terminal", "none", controlling, true, false},
		{"not the controlling terminal", "none", &syscall.SysProcAttr{Setsid: true}, true, true},
		{"no terminal", "none", &syscall.SysProcAttr{Setpgid: true}, false, false},
		{"a group of somebody else", "none", nil, false, false},
	} {
		t.Run(test.name, func(t *testing.T) {
			cmd := viaExec(t, "terminal", test.want)
			cmd.SysProcAttr = test.attr
			if test.stdin {
				cmd.Stdin = terminal
			}
			if test.both {
				cmd.Stdout = terminal
			}
			cmd.Stderr = nil
			stderr, err := cmd.StderrPipe()
			if err != nil {
				t.Fatal(err)
			}
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			said, err := io.ReadAll(stderr)
			if waited := cmd.Wait(); err != nil || waited != nil || len(said) > 0 {
				t.Errorf("%v, %v: %s", err, waited, said)
			}
		})
	}
}
