//go:build unix

package e2e

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/creack/pty"
	"golang.org/x/sys/unix"
)

// onTerminal runs its command as the leader of a new session on the terminal
// that descriptor 0 is.
var onTerminal = role("on-terminal", func() int {
	_, argv := unwrap()
	cmd := terminalCommand(argv, &syscall.SysProcAttr{Setsid: true, Setctty: true, Ctty: 0})
	if err := cmd.Run(); cmd.ProcessState == nil {
		fmt.Fprintf(os.Stderr, "on-terminal: %v\n", err)
		return 1
	}
	return 0
})

func terminalCommand(argv []string, attr *syscall.SysProcAttr) *exec.Cmd {
	cmd := exec.Command(argv[0], argv[1:]...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
	cmd.SysProcAttr = attr
	return cmd
}

// jobShell does for its command what a shell with job control does, and writes
// a jobReport to the file that jobReportEnv names.
var jobShell = role("job-shell", func() int {
	_, argv := unwrap()
	modes := func() string {
		stty := exec.Command("stty", "-g")
		stty.Stdin = os.Stdin
		out, err := stty.Output()
		if err != nil {
			panic(err)
		}
		return string(out)
	}
	before := modes()
	job := terminalCommand(argv, &syscall.SysProcAttr{Foreground: true, Ctty: 0})
	if err := job.Run(); job.ProcessState == nil {
		panic(err)
	}
	front, err := unix.IoctlGetInt(0, unix.TIOCGPGRP)
	if err != nil {
		panic(err)
	}
	report, err := json.Marshal(jobReport{
		Status:       fmt.Sprint(job.ProcessState),
		FrontIsJob:   front == job.Process.Pid,
		ModesChanged: modes() != before,
	})
	if err != nil {
		panic(err)
	}
	if err := os.WriteFile(os.Getenv(jobReportEnv), report, 0o666); err != nil {
		panic(err)
	}
	return 0
})

const jobReportEnv = "WGR_JOB_REPORT"

// jobReport is how a job has left the terminal.
type jobReport struct {
	Status       string
	FrontIsJob   bool // and not a group that the job has started
	ModesChanged bool
}

// terminal is a session whose streams are all one terminal.
type terminal struct {
	*session
	keyboard *os.File
	id       string // identity of the terminal
	dir      string
}

// startOnTerminal starts wireguardrun on a new terminal: as the job of a shell,
// or as the only program there. Expect sees the screen.
func startOnTerminal(t *testing.T, asJob bool, o Options) *terminal {
	t.Helper()
	keyboard, tty, err := pty.Open()
	if err != nil {
		t.Fatal(err)
	}
	defer tty.Close()
	s := &terminal{keyboard: keyboard, id: identityOf(t, tty), dir: t.TempDir()}
	if asJob {
		o = wrapped(o, jobShell)
	}
	o = wrapped(o, onTerminal)
	o.Env = append(o.Env, jobReportEnv+"="+s.path("job"), reportEnv+"="+s.path("server"))
	o.Stdin, o.Stdout, o.StderrTo = tty, tty, tty
	s.session = start(t, o)
	s.out = s.read(keyboard, "<")
	return s
}

func (s *terminal) path(name string) string { return filepath.Join(s.dir, name) }

// press sends keys.
func (s *terminal) press(keys string) {
	s.t.Helper()
	s.log.add("keys", keys)
	if _, err := s.keyboard.WriteString(keys); err != nil {
		s.t.Fatal(err)
	}
}

// wantJob compares how the job has left the terminal: with itself in the
// foreground and the modes that it found.
func (s *terminal) wantJob(status string) {
	s.t.Helper()
	text, err := os.ReadFile(s.path("job"))
	if err != nil {
		s.t.Fatal(err)
	}
	var got jobReport
	if err := json.Unmarshal(text, &got); err != nil {
		s.t.Fatal(err)
	}
	if want := (jobReport{Status: status, FrontIsJob: true}); got != want {
		s.t.Errorf("the job left %+v, want %+v", got, want)
	}
}

// By hand, at a terminal: keys reach the server, whose output is there too.
func TestTerminal(t *testing.T) {
	for _, asJob := range []bool{false, true} {
		t.Run(fmt.Sprintf("job=%v", asJob), func(t *testing.T) {
			s := startOnTerminal(t, asJob, Options{
				Command: []string{"sh", "-c", `echo stray; read x <&3; echo "got $x" >&4; read x <&3; echo "$x and bye" >&4`},
			})
			s.Expect("stray\r\n")
			s.press("hello\n")
			s.Expect("hello\r\ngot hello\r\n")
			s.press("again\n")
			s.Expect("again\r\nagain and bye\r\n")
			s.ExpectExit(Status{})
			if asJob {
				s.wantJob("exit status 0")
			}
		})
	}
}

// The server's group is in the foreground, and all of its descriptors but 0
// are the terminal itself.
func TestTerminalHandedDown(t *testing.T) {
	s := startOnTerminal(t, true, Options{Role: server})
	s.press("exit 0\n")
	s.ExpectExit(Status{})
	r := readReport(t, s.path("server"))
	wantNumbers(t, r, 0, 1, 2, 3, 4)
	for n := 1; n < 5; n++ {
		if got := r.file(n).ID; got != s.id {
			t.Errorf("descriptor %d is %s, want the terminal, %s", n, got, s.id)
		}
	}
	if null := identityOfPath(t, os.DevNull); r.file(0).ID != null {
		t.Error("descriptor 0 is not the null device")
	}
	if r.Front != r.Group || r.Group != r.Pid {
		t.Errorf("the server, %d, is in group %d, and group %d is in the foreground", r.Pid, r.Group, r.Front)
	}
	s.wantJob("exit status 0")
}

// A key for a signal reaches the server's group once, and us not at all.
func TestTerminalInterrupt(t *testing.T) {
	useRole(catcher)
	s := startOnTerminal(t, true, Options{Role: server})
	s.press("catch\n")
	s.Expect("catch\r\nok\r\n")
	var seen string
	for range 2 {
		s.press("\x03")
		// In any order: the echo of the key, and two processes.
		for _, who := range []string{"server", "child"} {
			line := who + ": interrupt\r\n"
			seen += s.take("a line of the "+who, func(data []byte, _ bool) (int, bool) {
				return 0, strings.Contains(string(data), line)
			})
		}
		seen += s.take("both lines", func(data []byte, _ bool) (int, bool) { return len(data), true })
	}
	s.press("exit 5\n")
	s.ExpectExit(Status{})
	seen += s.Rest()
	for _, who := range []string{"server", "child"} {
		if got := strings.Count(seen, who+": interrupt"); got != 2 {
			t.Errorf("the %s got %d signals for 2 keys", who, got)
		}
	}
	s.wantJob("exit status 5")
}

// Without a handler it is the end, ours too, and the shell sees why.
func TestTerminalInterruptEnds(t *testing.T) {
	s := startOnTerminal(t, true, Options{Role: mirror})
	s.press("ready\n")
	s.Expect("ready\r\nready\r\n")
	s.press("\x03")
	s.ExpectExit(Status{})
	s.wantJob("signal: interrupt")
}

// A server that leaves the terminal in another mode does not leave it so.
func TestTerminalModesAreBack(t *testing.T) {
	for _, end := range []string{"exit 0", "kill -KILL $$"} {
		t.Run(end, func(t *testing.T) {
			s := startOnTerminal(t, true, Options{
				Command: []string{"sh", "-c", `stty -icanon -echo -icrnl -isig <&3; stty -a <&3 | grep -o -e -icanon; ` + end},
			})
			s.Expect("-icanon\r\n")
			s.ExpectExit(Status{})
			status := "exit status 0"
			if end != "exit 0" {
				status = "signal: killed"
			}
			s.wantJob(status)
		})
	}
}

// Where the terminal is not the wire, it stays with whoever has it.
func TestTerminalIsOnlyStderr(t *testing.T) {
	s := startOnTerminal(t, true, Options{
		Role:   server,
		Prefix: []string{"sh", "-c", `exec "$0" "$@" </dev/null >/dev/null`},
	})
	s.ExpectExit(Status{})
	r := readReport(t, s.path("server"))
	if got := r.file(2).ID; got != s.id {
		t.Errorf("descriptor 2 is %s, want the terminal, %s", got, s.id)
	}
	if r.Front == 0 || r.Front == r.Group {
		t.Errorf("the server is in group %d, and group %d is in the foreground", r.Group, r.Front)
	}
	s.wantJob("exit status 0")
}
