package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"

	"github.com/wireguardrun/wireguardrun/guard"
	"github.com/wireguardrun/wireguardrun/internal/proc"
)

// codedError is an error that knows its exit code.
type codedError int

func (codedError) Error() string   { return "coded" }
func (e codedError) ExitCode() int { return int(e) }

func TestExitCode(t *testing.T) {
	tests := []struct {
		err  error
		want int
	}{
		{nil, 0},
		{errors.New("x"), 125},
		{fmt.Errorf("x: %w", fs.ErrNotExist), 125}, // a missing log file is not a missing command
		{codedError(3), 3},
		{fmt.Errorf("x: %w", codedError(3)), 3},
		{errors.Join(errors.New("x"), codedError(4)), 4},
		{withHint(codedError(126), "do this"), 126},
		{withHint(errors.New("x"), "do this"), 125},
		{launchFailure("x", "", "/bin", proc.ErrNotFound), 127},
	}
	for _, test := range tests {
		if got := exitCode(test.err); got != test.want {
			t.Errorf("exitCode(%v) = %d, want %d", test.err, got, test.want)
		}
	}
}

func TestChildExitCode(t *testing.T) {
	ctrlC := uint32(0xC000013A) // Windows: ended by Ctrl-C
	tests := []struct{ code, signal, want int }{
		{0, 0, 0}, {1, 0, 1}, {2, 0, 2}, {64, 0, 64}, {125, 0, 125}, {127, 0, 127}, {254, 0, 254}, {255, 0, 255},
		{-1, 1, 129}, {-1, 9, 137}, {-1, 15, 143}, {0, 64, 192},
		{int(ctrlC), 0, int(ctrlC)},
	}
	for _, test := range tests {
		if got := childExitCode(test.code, test.signal); got != test.want {
			t.Errorf("childExitCode(%d, %d) = %d, want %d", test.code, test.signal, got, test.want)
		}
	}
}

func TestLaunchFailure(t *testing.T) {
	started := func(path string, err error) error { return &fs.PathError{Op: "fork/exec", Path: path, Err: err} }
	tests := []struct {
		name, file string
		err        error
		code       int
		says       string
		hint       bool
	}{
		{"srv", "", proc.ErrNotFound, 127, `cannot find "srv" in PATH=/usr/bin:/bin`, true},
		{"srv", "", &fs.PathError{Op: "exec", Path: "/opt/srv", Err: syscall.EACCES}, 126, `cannot execute "/opt/srv"`, true},
		{"./srv", "", &fs.PathError{Op: "stat", Path: "./srv", Err: syscall.ENOENT}, 127, `the program "./srv"`, true},
		{"./srv", "", started("./srv", syscall.ENOENT), 127, `"./srv"`, true},
		{`C:\srv`, "", syscall.ENOENT, 127, `C:\srv`, true},
		{"a/b/srv", "", started("a/b/srv", syscall.ENOTDIR), 127, `"a/b/srv"`, true},
		{"node server.js", "", proc.ErrNotFound, 127, "spaces", true},
		{"srv", "/bin/srv", started("/bin/srv", syscall.ENOENT), 126, "/bin/srv", true},
		{"srv", "/bin/srv", started("/bin/srv", syscall.EACCES), 126, `cannot execute "/bin/srv"`, true},
		{"./dir", "", &fs.PathError{Op: "exec", Path: "./dir", Err: syscall.EISDIR}, 126, `"./dir": it is a directory`, true},
		{"srv", "/bin/srv", started("/bin/srv", syscall.EPERM), 126, "/bin/srv", true},
		{"srv", "/bin/srv", started("/bin/srv", syscall.ENOEXEC), 126, "/bin/srv", true},
		{"srv", "/bin/srv", started("/bin/srv", errBadExeFormat), 126, "/bin/srv", true},
		{"srv", "/bin/srv", started("/bin/srv", errMachineMismatch), 126, "/bin/srv", true},
		{"srv", "/bin/srv", started("/bin/srv", errElevationRequired), 126, "/bin/srv", true},
		{"srv", "/bin/srv", started("/bin/srv", syscall.ETXTBSY), 126, "/bin/srv", false},
		{"srv", "/bin/srv", started("/bin/srv", syscall.E2BIG), 126, "/bin/srv", true},
		{"srv", "", &fs.PathError{Op: "exec", Path: "srv", Err: exec.ErrDot}, 126, "current directory", true},
		{"srv", "/bin/srv", started("/bin/srv", syscall.EAGAIN), 125, `cannot start "srv"`, true},
		{"srv", "/bin/srv", started("/bin/srv", syscall.ENOMEM), 125, `cannot start "srv"`, true},
		{"srv", "/bin/srv", syscall.EMFILE, 125, `cannot start "srv"`, true},
		{"srv", "/bin/srv", started("/bin/srv", syscall.EBADF), 125, `cannot start "srv"`, true},
		{"srv", "/bin/srv", &fs.PathError{Op: "chdir", Path: "/no", Err: syscall.ENOENT}, 125, `directory "/no"`, true},
		{"srv", "/bin/srv", &fs.PathError{Op: "chdir", Path: "/no", Err: syscall.EACCES}, 125, `directory "/no"`, true},
		{"srv", "", errors.New("odd"), 126, `cannot execute "srv": odd`, false},
	}
	for _, test := range tests {
		err := launchFailure(test.name, test.file, "/usr/bin:/bin", test.err)
		if got := exitCode(err); got != test.code {
			t.Errorf("%v: exit code %d, want %d", test.err, got, test.code)
		}
		if !strings.Contains(err.Error(), test.says) {
			t.Errorf("%v: %q, want %q in it", test.err, err, test.says)
		}
		if (hintOf(err) != "") != test.hint {
			t.Errorf("%v: hint %q", test.err, hintOf(err))
		}
		if !errors.Is(err, test.err) {
			t.Errorf("%v is not wrapped in %v", test.err, err)
		}
	}
	if err := launchFailure("srv", "", "", nil); err != nil {
		t.Errorf("no error became %v", err)
	}
}

// A wire that fails is told by the stream and the system's reason.
func TestWireFailure(t *testing.T) {
	for _, test := range []struct {
		err  error
		want string
	}{
		{&guard.StepError{Op: "read", Stream: guard.In, Err: os.NewSyscallError("read", syscall.EISDIR)},
			"cannot read standard input, so the server is ended: " + syscall.EISDIR.Error()},
		{&guard.StepError{Op: "write", Stream: guard.Out, Err: os.NewSyscallError("write", syscall.ENOSPC)},
			"cannot write to standard output, so the server is ended: " + syscall.ENOSPC.Error()},
	} {
		err := wireFailure(test.err)
		if err.Error() != test.want || hintOf(err) == "" || exitCode(err) != 125 || !errors.As(err, new(syscall.Errno)) {
			t.Errorf("%v: %q, hint %q", test.err, err, hintOf(err))
		}
	}
}
