package e2e

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"testing"
)

// server is the child of most tests. It reads commands from its wire, one a
// line, and answers each with one line when it has obeyed, so that a test
// knows that the effect is there.
//
//	out TEXT     print TEXT, a quoted Go string, on descriptor 1
//	err TEXT     the same on descriptor 2
//	spawn TEXT   the same by a subprocess, on the descriptor 1 that it inherits
//	flood N      print N bytes on descriptor 2
//	last TEXT    print TEXT on descriptor 1 at the end of the input
//	stdin        read a byte from descriptor 0
//	report       what describe saw when the server started
//	close N ...  close descriptors
//	exit N       no answer: end with status N
//
// It ends with 0 at the end of its input, and with brokenWire when its answer
// can't be written, which it then says on descriptor 2. Before all that it
// writes its report to the file that reportEnv names, if any.
var server = role("server", serve)

const (
	reportEnv  = "WGR_REPORT"
	brokenWire = 5
)

func serve() int {
	report, err := json.Marshal(describe())
	if err != nil {
		panic(err)
	}
	if path := os.Getenv(reportEnv); path != "" {
		if err := os.WriteFile(path, report, 0o666); err != nil {
			panic(err)
		}
	}
	in, out := handedWire()
	last := ""
	lines := bufio.NewScanner(in)
	for lines.Scan() {
		name, arg, _ := strings.Cut(lines.Text(), " ")
		var answer string
		switch name {
		case "exit":
			return number(arg)
		case "report":
			answer = string(report)
		case "last":
			last, answer = unquote(arg), "ok"
		default:
			obey := commands[name]
			if obey == nil {
				obey = systemCommands[name]
			}
			if obey == nil {
				fmt.Fprintf(os.Stderr, "server: no such command: %q\n", lines.Text())
				return 1
			}
			answer = obey(arg)
		}
		if _, err := io.WriteString(out, answer+"\n"); err != nil {
			fmt.Fprintf(os.Stderr, "server: answer: %v\n", err)
			return brokenWire
		}
	}
	if _, err := io.WriteString(os.Stdout, last); err != nil {
		return 1
	}
	return 0
}

// commands return the answer. There are more in the files named after systems.
var commands = map[string]func(arg string) string{
	"out": func(text string) string { return done(io.WriteString(os.Stdout, unquote(text))) },
	"err": func(text string) string { return done(io.WriteString(os.Stderr, unquote(text))) },
	"spawn": func(text string) string {
		argv, env := roleCommand(printer, unquote(text))
		cmd := exec.Command(argv[0], argv[1:]...)
		cmd.Env = append(os.Environ(), env...)
		cmd.Stdout = os.Stdout
		return done(0, cmd.Run())
	},
	"flood": func(n string) string {
		line := strings.Repeat("x", 99) + "\n"
		return done(io.WriteString(os.Stderr, strings.Repeat(line, number(n)/len(line))))
	},
	"stdin": func(string) string {
		var b [1]byte
		n, err := os.Stdin.Read(b[:])
		return fmt.Sprintf("%d bytes, %v", n, err)
	},
	"close": func(list string) string {
		for _, n := range strings.Fields(list) {
			if err := closeDescriptor(number(n)); err != nil {
				return err.Error()
			}
		}
		return "ok"
	},
}

// printer prints its argument on descriptor 1.
var printer = role("printer", func() int {
	if _, err := io.WriteString(os.Stdout, os.Args[1]); err != nil {
		return 1
	}
	return 0
})

func done(_ int, err error) string {
	if err != nil {
		return err.Error()
	}
	return "ok"
}

func number(text string) int {
	n, err := strconv.Atoi(text)
	if err != nil {
		panic(err)
	}
	return n
}

func unquote(text string) string {
	plain, err := strconv.Unquote(text)
	if err != nil {
		panic(fmt.Sprintf("%s: %v", text, err))
	}
	return plain
}

// childReport is what a server was started with. JSON keeps []byte as it is,
// and a string only if it is text.
type childReport struct {
	Args    [][]byte // without the program's name
	Env     [][]byte
	Dir     string
	Pid     int
	Parent  int
	Group   int          // Unix: process group
	Files   []descriptor // Unix: all that a program started by the server would get
	Front   int          // Unix: the foreground process group of the terminal that descriptor 2 is, else 0
	Ignored []int        // Unix: of the signals that a nohup and the like ignore
}

// descriptor is one of the server's.
type descriptor struct {
	Number   int
	ID       string // device and inode: both ends of a pipe have the same
	NonBlock bool
}

// getenv returns the value and whether there is one.
func (r childReport) getenv(name string) (string, bool) {
	for _, kv := range r.Env {
		if value, ok := strings.CutPrefix(string(kv), name+"="); ok {
			return value, true
		}
	}
	return "", false
}

// startServer starts the server role.
func startServer(t testing.TB, o Options) *session {
	t.Helper()
	o.Role = server
	return start(t, o)
}

// ask sends a command and returns the answer.
func ask(s *session, command string) string {
	s.t.Helper()
	s.Send(command + "\n")
	return s.ReadLine()
}

// order sends commands and expects "ok" for each.
func order(s *session, commands ...string) {
	s.t.Helper()
	for _, c := range commands {
		if got := ask(s, c); got != "ok" {
			s.t.Fatalf("the server answers %q to %s", got, clip(c))
		}
	}
}

// askReport gets the server's report over the wire.
func askReport(s *session) childReport {
	s.t.Helper()
	return parseReport(s.t, []byte(ask(s, "report")))
}

func parseReport(t testing.TB, text []byte) childReport {
	t.Helper()
	var r childReport
	if err := json.Unmarshal(text, &r); err != nil {
		t.Fatalf("the report is %s: %v", clip(string(text)), err)
	}
	return r
}

// finish ends the client's side, and expects nothing more on the wire and
// success.
func finish(s *session) {
	s.t.Helper()
	s.CloseStdin()
	s.ExpectEnd()
	s.ExpectExit(Status{})
}

// wantStderr compares all of standard error, after the end.
func wantStderr(s *session, want string) {
	s.t.Helper()
	if got := s.Stderr(); got != want {
		s.t.Errorf("standard error has %s, want %s", clip(got), clip(want))
	}
}

// wantNoWord checks that the server is told of no wire but 0 and 1.
func wantNoWord(t *testing.T, r childReport) {
	t.Helper()
	for _, name := range []string{"WIREGUARDRUN_IN", "WIREGUARDRUN_OUT", "WIREGUARDRUN_HANDOVER"} {
		if value, ok := r.getenv(name); ok {
			t.Errorf("%s is %q, and should not be there", name, value)
		}
	}
}
