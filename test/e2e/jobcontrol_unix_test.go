//go:build unix

package e2e

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// see takes the screen up to the text and what comes before it, which it
// returns.
func (s *terminal) see(text string) string {
	s.t.Helper()
	return s.take(fmt.Sprintf("%q on the screen", text), func(data []byte, _ bool) (int, bool) {
		i := strings.Index(string(data), text)
		return i + len(text), i >= 0
	})
}

// seeAll takes what is on the screen once all texts are there, in any order.
func (s *terminal) seeAll(texts ...string) string {
	s.t.Helper()
	return s.take(fmt.Sprintf("%q on the screen", texts), func(data []byte, _ bool) (int, bool) {
		for _, text := range texts {
			if !strings.Contains(string(data), text) {
				return 0, false
			}
		}
		return len(data), true
	})
}

const prompt = "bash-prompt> "

// startShell starts an interactive shell with job control on a new terminal,
// where ./job is a guarded server of the given role.
func startShell(t *testing.T, role string, args ...string) *terminal {
	t.Helper()
	bash := needs(t, "bash")
	dir := t.TempDir()
	argv, env := roleCommand(role, args...)
	writeFile(t, filepath.Join(dir, "job"), fmt.Sprintf("#!/bin/sh\n%s exec '%s' --wire=fds -- '%s'\n",
		env[0], wireguardrun, strings.Join(argv, "' '")))
	if err := os.Chmod(filepath.Join(dir, "job"), 0o755); err != nil {
		t.Fatal(err)
	}
	s := startOnTerminal(t, false, Options{
		Bare: true, Dir: dir,
		Command: []string{bash, "--norc", "--noprofile", "--noediting", "-i"},
		Env:     []string{"PS1=" + prompt, "HISTFILE=/dev/null", "TERM=dumb", "LC_ALL=C"},
	})
	s.see(prompt)
	return s
}

// shell types a line at the prompt and waits for the next one.
func (s *terminal) shell(line string) string {
	s.t.Helper()
	s.press(line + "\n")
	return s.see(prompt)
}

func (s *terminal) want(got, want string) {
	s.t.Helper()
	if !strings.Contains(got, want) {
		s.t.Fatalf("the screen has %q, want %q in it", got, want)
	}
}

// obeys checks that keys reach the server.
func (s *terminal) obeys(word string) {
	s.t.Helper()
	s.press("echo " + word + "\n")
	s.see("\r\n" + word + "\r\n")
}

// Ctrl-Z stops the server and us, fg lets both go on, bg takes nothing from the
// shell.
func TestJobControl(t *testing.T) {
	s := startShell(t, living)
	s.press("./job\n")
	s.see("ready\r\n")
	for _, word := range []string{"first", "second", "third"} {
		s.obeys(word)
		s.press("\x1a")
		s.want(s.see(prompt), "Stopped")
		s.want(s.shell("echo the $((1+1))nd"), "the 2nd")
		s.press("fg\n")
		s.see("./job\r\n")
	}
	s.obeys("after fg")
	s.press("\x1a")
	s.see(prompt)

	// In the background it may not read the terminal, which stops it; the
	// terminal stays with the shell.
	s.want(s.shell("bg"), "./job &")
	for seen, end := "", limit(t); !strings.Contains(seen, "Stopped"); {
		if seen = s.shell("jobs"); time.Now().After(end) {
			t.Fatal("the server is not stopped")
		}
	}
	s.want(s.shell("echo the $((1+2))rd"), "the 3rd")
	s.press("fg\n")
	s.see("./job\r\n")
	s.obeys("again")
	s.press("exit 5\n")
	s.see(prompt)
	s.want(s.shell("echo status $?"), "status 5")
	s.press("exit 0\n")
	s.ExpectExit(Status{})
}

// Where there is no shell, as in a container or a terminal of its own, nobody
// could let a stopped session go on: there Ctrl-Z stops nobody, as without us.
func TestStopWithoutShell(t *testing.T) {
	for name, o := range map[string]Options{
		"fds":   {Role: living, Flags: []string{"--wire=fds"}},
		"relay": {Command: []string{"cat"}, Flags: []string{"--wire=stdio", "--framing=raw"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := startOnTerminal(t, false, o)
			if o.Role != "" {
				s.see("ready\r\n")
			}
			// A stop may come after the first answer, but not after the last.
			for n := range 5 {
				s.press("\x1a")
				s.press(fmt.Sprintf("echo %d\n", n))
				s.see(fmt.Sprintf("%d\r\n", n)) // what was typed
				s.see(fmt.Sprintf("%d\r\n", n))
			}
			s.press("\x04")
			s.ExpectExit(Status{})
		})
	}
}

// Ctrl-C ends the server once it has gone on as well, and the shell sees why.
func TestJobControlInterrupt(t *testing.T) {
	s := startShell(t, living)
	s.press("./job\n")
	s.see("ready\r\n")
	s.press("\x1a")
	s.want(s.see(prompt), "Stopped")
	s.press("fg\n")
	s.see("./job\r\n")
	s.obeys("there")
	s.press("\x03")
	s.see(prompt)
	s.want(s.shell("echo status $?"), "status 130")
	s.press("exit 0\n")
	s.ExpectExit(Status{})
}

// sleeper does not use the terminal. It ends when its file is there.
var sleeper = role("sleeper", func() int {
	_, out := handedWire()
	fmt.Fprintln(out, "ready")
	awaitFile(os.Args[1])
	return 6
})

// A job that ends in the background, to which it was put, leaves the terminal
// to the shell.
func TestJobControlEndsInBackground(t *testing.T) {
	path := filepath.Join(t.TempDir(), "go on")
	for name, begin := range map[string]func(*terminal){
		"bg": func(s *terminal) {
			s.press("./job\n")
			s.see("ready\r\n")
			s.press("\x1a")
			s.want(s.see(prompt), "Stopped")
			s.shell("bg")
		},
		"&": func(s *terminal) {
			s.press("./job &\n")
			s.see("ready\r\n")
		},
	} {
		t.Run(name, func(t *testing.T) {
			defer os.Remove(path)
			s := startShell(t, sleeper, path)
			begin(s)
			// One line: a prompt in between might tell of the end, and forget it.
			s.press("echo before the $((1+3))th; wait %1; echo status $?\n")
			s.see("before the 4th\r\n")
			writeFile(t, path, "")
			s.see("status 6\r\n")
			s.press("echo after the $((2+3))th\n")
			s.see("after the 5th\r\n")
			s.press("exit 0\n")
			s.ExpectExit(Status{})
		})
	}
}

// screenClient is a client that has the terminal, and the wire in pipes: our
// group is its own. It tells of the interrupts that it gets.
var screenClient = role("screen-client", func() int {
	_, argv := unwrap()
	caught := make(chan os.Signal, 4)
	signal.Notify(caught, unix.SIGINT)
	cmd := exec.Command(argv[0], argv[1:]...)
	in, err := cmd.StdinPipe()
	if err != nil {
		panic(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		panic(err)
	}
	cmd.Stderr = os.Stderr
	if err := cmd.Start(); err != nil {
		panic(err)
	}
	go func() {
		for range caught {
			fmt.Println("client: interrupt")
		}
	}()
	answers, keys := bufio.NewScanner(out), bufio.NewScanner(os.Stdin)
	for keys.Scan() {
		if keys.Text() == "end" {
			break
		}
		fmt.Fprintln(in, keys.Text())
		if !answers.Scan() {
			fmt.Println("client: no server")
			break
		}
		fmt.Println("server says:", answers.Text())
	}
	front, err := unix.IoctlGetInt(0, unix.TIOCGPGRP)
	fmt.Println("client: in front", front == unix.Getpgrp(), err)
	in.Close()
	if err := cmd.Wait(); err != nil {
		fmt.Println("client:", err)
	}
	return 0
})

// A client in a terminal keeps it, and a key press reaches the server once.
func TestClientKeepsItsTerminal(t *testing.T) {
	useRole(catcher)
	o := Options{Role: server}
	s := startOnTerminal(t, true, wrapped(o, screenClient))
	s.press("catch\n")
	s.see("server says: ok\r\n")
	seen := ""
	for range 2 {
		s.press("\x03")
		seen += s.seeAll("client: interrupt\r\n", "server: interrupt\r\n", "child: interrupt\r\n")
	}
	s.press("stdin\n")
	seen += s.see("server says: 0 bytes, EOF\r\n")
	s.press("end\n")
	seen += s.see("client: in front true <nil>\r\n")
	s.ExpectExit(Status{})
	seen += s.Rest()
	for _, who := range []string{"client", "server", "child"} {
		if got := strings.Count(seen, who+": interrupt"); got != 2 {
			t.Errorf("the %s got %d signals for 2 keys: %q", who, got, seen)
		}
	}
	if strings.Contains(seen, "no server") {
		t.Errorf("the screen has %q", seen)
	}
	s.wantJob("exit status 0")
}

// A server that is stopped because it uses a terminal is told of, and does not
// wait for ever with its signals.
func TestStoppedByTheTerminal(t *testing.T) {
	for _, stop := range []unix.Signal{unix.SIGTTIN, unix.SIGTTOU} {
		for _, sig := range []unix.Signal{unix.SIGTERM, unix.SIGHUP} {
			t.Run(fmt.Sprintf("%v, %v", stop, sig), func(t *testing.T) {
				f := startFamily(t, Options{}, "group")
				f.ExpectLine("ready")
				f.Send(fmt.Sprintf("raise %d\n", int(stop)))
				f.WaitStderr("the server was stopped because it uses the terminal")
				f.lives(0)
				f.Signal(sig)
				f.ExpectEnd()
				f.ExpectExit(Status{Signal: sig})
				f.allGone()
			})
		}
	}
}

// The same at a real terminal: the server opens it, and is not in front.
func TestServerReadsTheTerminalOfItsClient(t *testing.T) {
	s := startOnTerminal(t, true, wrapped(Options{
		Command: []string{"sh", "-c", "echo ready >&4; read x </dev/tty; echo has read >&4"},
	}, screenClient))
	s.press("x\n")
	s.seeAll("server says: ready\r\n", "the server was stopped because it uses the terminal")
	s.press("\x03")
	s.see("client: interrupt\r\n")
	s.press("end\n")
	s.see("client: in front true <nil>\r\n")
	s.see("client: signal: interrupt\r\n")
	s.ExpectExit(Status{})
	s.wantJob("exit status 0")
}
