package e2e

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/windows"
)

// raw makes the relay pass what the server role says, which is no protocol.
var raw = []string{"--wire=stdio", "--framing=raw"}

// lingerer stays until somebody kills it.
var lingerer = role("lingerer", func() int {
	time.Sleep(time.Hour)
	return 0
})

// linger starts a lingerer and returns its id. It has no console: Wine's
// consoles are processes that inherit what they find, and that stay with the
// last one who uses them.
func linger(flags uint32, handles ...syscall.Handle) (pid string, err error) {
	argv, env := roleCommand(lingerer)
	cmd := exec.Command(argv[0])
	cmd.Env = append(os.Environ(), env...)
	cmd.SysProcAttr = &syscall.SysProcAttr{CreationFlags: flags | windows.DETACHED_PROCESS, AdditionalInheritedHandles: handles}
	if err := cmd.Start(); err != nil {
		return "", err
	}
	return strconv.Itoa(cmd.Process.Pid), nil
}

var systemCommands = map[string]func(string) string{
	// The id of a process that stays, in the server's job or out of it.
	"linger": func(how string) string {
		flags := uint32(0)
		if how == "breakaway" {
			flags = windows.CREATE_BREAKAWAY_FROM_JOB
		}
		pid, err := linger(flags)
		if err != nil {
			return err.Error()
		}
		return pid
	},
	// An answer when the parent has ended.
	"orphaned": func(string) string {
		parent, err := windows.OpenProcess(windows.SYNCHRONIZE, false, uint32(os.Getppid()))
		if err != nil {
			return "ok" // it has ended
		}
		defer windows.CloseHandle(parent)
		_, err = windows.WaitForSingleObject(parent, windows.INFINITE)
		return done(0, err)
	},
}

// watched is a process that is none of ours to wait for.
type watched struct{ handle windows.Handle }

func watch(t *testing.T, pid string) watched {
	t.Helper()
	n, err := strconv.Atoi(pid)
	if err != nil {
		t.Fatal(err)
	}
	h, err := windows.OpenProcess(windows.SYNCHRONIZE|windows.PROCESS_TERMINATE, false, uint32(n))
	if err != nil {
		t.Fatalf("process %d: %v", n, err)
	}
	t.Cleanup(func() {
		_ = windows.TerminateProcess(h, 1)
		_ = windows.CloseHandle(h)
	})
	return watched{h}
}

func (w watched) ends(t *testing.T) {
	t.Helper()
	left := max(time.Until(limit(t)), 0).Milliseconds()
	if event, err := windows.WaitForSingleObject(w.handle, uint32(left)); err != nil || event != windows.WAIT_OBJECT_0 {
		t.Errorf("the process lives: %v", err)
	}
}

func (w watched) lives(t *testing.T) {
	t.Helper()
	if event, _ := windows.WaitForSingleObject(w.handle, 0); event != uint32(windows.WAIT_TIMEOUT) {
		t.Error("the process has ended")
	}
}

// The job ends all that the server has started, however we end, and nothing
// that has asked to be out of it.
func TestTreeEndsWithUs(t *testing.T) {
	for _, killed := range []bool{true, false} {
		t.Run(fmt.Sprintf("killed %v", killed), func(t *testing.T) {
			t.Parallel()
			s := startServer(t, Options{})
			server := watch(t, strconv.Itoa(askReport(s).Pid))
			child := watch(t, ask(s, "linger"))
			daemon := watch(t, ask(s, "linger breakaway"))
			if killed {
				if err := s.cmd.Process.Kill(); err != nil {
					t.Fatal(err)
				}
				s.WaitExit()
			} else {
				s.CloseStdin()
				if got := s.WaitExit(); got != (Status{}) {
					t.Errorf("%v, want the server's status", got)
				}
			}
			server.ends(t)
			child.ends(t)
			daemon.lives(t)
		})
	}
}

// A launcher that has ended well has left the server behind in the job.
var launcher = role("launcher", func() int {
	argv, env := roleCommand(server)
	cmd := exec.Command(argv[0])
	cmd.Env = append(os.Environ(), env...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
	cmd.SysProcAttr = &syscall.SysProcAttr{AdditionalInheritedHandles: handedHandles()}
	if err := cmd.Start(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return 0
})

// handedHandles are those of the record in the environment, if there is one.
func handedHandles() []syscall.Handle {
	record := os.Getenv("WIREGUARDRUN_HANDOVER")
	if record == "" {
		return nil
	}
	var handles []syscall.Handle
	for _, key := range []string{"in", "out"} {
		f := handedHandle(record, key)
		handles = append(handles, syscall.Handle(f.Fd()))
	}
	return handles
}

func TestLauncherLeavesServer(t *testing.T) {
	useRole(server)
	for name, flags := range map[string][]string{
		"relay": raw, "auto": {"--wire=auto", "--framing=raw"}, "fds": {"--wire=fds"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := start(t, Options{Flags: flags, Role: launcher})
			order(s, "orphaned", "err \"here\\n\"")
			s.CloseStdin()
			s.ExpectEnd()
			s.ExpectExit(Status{})
			wantStderr(s, "here\n")
		})
	}
}

// What is left in the job and has none of the server's pipes is no server.
func TestServerLeavesHelper(t *testing.T) {
	for name, flags := range map[string][]string{"relay": raw, "fds": {"--wire=fds"}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := startServer(t, Options{Flags: flags})
			helper := watch(t, ask(s, "linger"))
			s.Send("exit 0\n") // and the client stays
			s.ExpectExit(Status{})
			helper.ends(t)
		})
	}
}

// Without a console nothing can be sent to a server: its input ends, and then
// the job is ended.
func TestNoReader(t *testing.T) {
	t.Parallel()
	r, w := newPipe(t)
	s := startServer(t, Options{Flags: raw, Stdout: w})
	w.Close()
	s.Send("report\n")
	report, err := bufio.NewReader(r).ReadBytes('\n')
	if err != nil {
		t.Fatal(err)
	}
	server := watch(t, strconv.Itoa(parseReport(t, report).Pid))
	r.Close() // while nobody reads: a read that begins just then may stay
	if got := s.WaitExit(); got != (Status{}) {
		t.Errorf("%v, want the status of a server that ends with its input", got)
	}
	server.ends(t)
}

// stubborn tells the id of a process that it has started, and ends at no end of
// its input.
var stubborn = role("stubborn", func() int {
	pid, err := linger(0)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	fmt.Println(pid)
	_, _ = io.Copy(io.Discard, os.Stdin)
	time.Sleep(time.Hour)
	return 0
})

func TestStubbornServerIsKilled(t *testing.T) {
	t.Parallel()
	useRole(lingerer)
	s := start(t, Options{Flags: append(raw, "--eof-timeout=100ms", "--stop-timeout=100ms"), Role: stubborn})
	child := watch(t, s.ReadLine())
	s.CloseStdin()
	if got := s.Wait(); got != (Status{Code: 1}) {
		t.Errorf("%v, want that of a process that was killed", got)
	}
	child.ends(t)
}

// client starts wireguardrun with pipes of its own making and a process that
// holds its ends of them too, tells their ids, and ends when it is told to.
var client = role("client", func() int {
	fail := func(err error) int {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	in, toServer, err := os.Pipe()
	if err != nil {
		return fail(err)
	}
	fromServer, out, err := os.Pipe()
	if err != nil {
		return fail(err)
	}
	argv, env := roleCommand(server)
	cmd := exec.Command(os.Args[1], append(os.Args[2:], argv[0])...)
	cmd.Env = append(os.Environ(), env...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = in, out, os.Stderr
	if err := cmd.Start(); err != nil {
		return fail(err)
	}
	leak, err := linger(0, inheritable(toServer), inheritable(fromServer))
	if err != nil {
		return fail(err)
	}
	fmt.Println(cmd.Process.Pid, leak)
	_, _ = os.Stdin.Read(make([]byte, 1))
	return 0
})

func inheritable(f *os.File) syscall.Handle {
	h := syscall.Handle(f.Fd())
	if err := windows.SetHandleInformation(windows.Handle(h), windows.HANDLE_FLAG_INHERIT, windows.HANDLE_FLAG_INHERIT); err != nil {
		panic(err)
	}
	return h
}

// The client's end is seen by its process where its pipes are open elsewhere:
// who made the pipes is the client.
func TestClientDies(t *testing.T) {
	useRole(server, lingerer)
	for _, watches := range []bool{true, false} {
		t.Run(fmt.Sprintf("watched %v", watches), func(t *testing.T) {
			t.Parallel()
			args := append([]string{wireguardrun, "--stop-timeout=100ms"}, raw...)
			if !watches {
				args = append(args, "--watch-parent=no")
			}
			s := start(t, Options{Bare: true, Role: client, RoleArgs: append(args, "--")})
			pids := strings.Fields(s.ReadLine())
			run, leak := watch(t, pids[0]), watch(t, pids[1])
			s.CloseStdin()
			if got := s.WaitExit(); got != (Status{}) {
				t.Fatalf("the client ended with %v", got)
			}
			if watches {
				run.ends(t)
				leak.lives(t)
				return
			}
			// Now the pipes end too, and with them the session.
			run.lives(t)
			_ = windows.TerminateProcess(leak.handle, 1)
			run.ends(t)
		})
	}
}

// A launcher of ours that ends is no client.
var starter = role("starter", func() int {
	argv, env := roleCommand(server)
	cmd := exec.Command(os.Args[1], append(os.Args[2:], argv[0])...)
	cmd.Env = append(os.Environ(), env...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
	if err := cmd.Start(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return 0
})

func TestParentIsLauncher(t *testing.T) {
	t.Parallel()
	useRole(server)
	s := start(t, Options{Bare: true, Role: starter, RoleArgs: append(append([]string{wireguardrun}, raw...), "--")})
	if got := s.WaitExit(); got != (Status{}) {
		t.Fatalf("the launcher ended with %v", got)
	}
	run := watch(t, strconv.Itoa(askReport(s).Parent))
	if got := ask(s, "out \"still here\\n\""); got != "still here" {
		t.Errorf("the server answered %q after its launcher's end", got)
	}
	s.ExpectLine("ok")
	s.CloseStdin()
	run.ends(t)
}

// A null device as the wire's output is opened by the client, for good.
func TestStdoutIsNull(t *testing.T) {
	null, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer null.Close()
	for _, flags := range [][]string{{"--wire=fds"}, raw} {
		report := filepath.Join(t.TempDir(), "report")
		s := startServer(t, Options{Flags: flags, Stdout: null, Env: []string{reportEnv + "=" + report}})
		s.Send("out \"nowhere\"\n")
		s.CloseStdin()
		s.ExpectExit(Status{})
	}
}
