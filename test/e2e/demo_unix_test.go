//go:build unix

package e2e

import (
	"regexp"
	"strings"
	"testing"

	"github.com/creack/pty"
	"golang.org/x/sys/unix"
)

func TestDemoOnTerminal(t *testing.T) {
	for _, width := range []int{60, 80, 120} {
		keyboard, tty, err := pty.Open()
		if err != nil {
			t.Fatal(err)
		}
		if err := pty.Setsize(keyboard, &pty.Winsize{Rows: 24, Cols: uint16(width)}); err != nil {
			t.Fatal(err)
		}
		s := start(t, Options{Flags: []string{"demo"}, Stdin: tty, Stdout: tty, StderrTo: tty, Env: []string{"TERM=xterm"}})
		tty.Close()
		s.out = s.read(keyboard, "<")
		s.ExpectExit(Status{})
		screen := strings.ReplaceAll(s.Rest(), "\r\n", "\n")
		if !strings.Contains(screen, demoClean) || !regexp.MustCompile(demoDirty).MatchString(screen) {
			t.Errorf("the demo shows:\n%s", screen)
		}
		if !strings.Contains(screen, "\x1b[") {
			t.Error("there are no colours on a terminal")
		}
		for line := range strings.Lines(regexp.MustCompile("\x1b\\[[0-9]*m").ReplaceAllString(screen, "")) {
			// The two columns; the summary below may be longer.
			if strings.Contains(line, " | ") && len(line)-1 >= width {
				t.Errorf("%d columns are too many for %d: %q", len(line)-1, width, line)
			}
		}
	}
}

// A demo that nobody could see has not shown anything.
func TestDemoUnseen(t *testing.T) {
	t.Run("full disk", func(t *testing.T) {
		_, stderr, status := run(t, Options{Flags: []string{"demo"}, Stdout: fullDisk(t)}, "")
		wantFailure(t, "", stderr, status, 125, "no space left on device")
	})
	t.Run("nobody reads", func(t *testing.T) {
		r, w := newPipe(t)
		r.Close()
		_, stderr, status := run(t, Options{Flags: []string{"demo"}, Stdout: w}, "")
		wantFailure(t, "", stderr, status, 125, "broken pipe")
	})
	t.Run("closed", func(t *testing.T) {
		s := start(t, prepared(Options{Flags: []string{"demo"}}, "close:0"))
		s.ExpectExit(Status{})
		if !strings.Contains(s.Rest(), demoClean) {
			t.Error("the demo needs an open standard input")
		}
	})
}

// Requested output that can't be written is a failure, and said.
func TestRequestedOutputUnseen(t *testing.T) {
	for _, flag := range []string{"--help", "--version", "version"} {
		t.Run(flag, func(t *testing.T) {
			r, w := newPipe(t)
			r.Close()
			_, stderr, status := run(t, Options{Flags: []string{flag}, Stdout: w}, "")
			wantFailure(t, "", stderr, status, 125, "broken pipe")

			_, stderr, status = run(t, Options{Flags: []string{flag}, Stdout: fullDisk(t)}, "")
			wantFailure(t, "", stderr, status, 125, "no space left on device")
		})
	}
}

// When nobody can read our own words either, the code still tells.
func TestFailureUnseen(t *testing.T) {
	r, w := newPipe(t)
	r.Close()
	s := start(t, Options{Command: []string{"no-such-program"}, StderrTo: w})
	s.ExpectExit(Status{Code: 127})
	s = start(t, prepared(Options{Command: []string{"no-such-program"}}, "close:2"))
	s.ExpectExit(Status{Code: 127})
	s = start(t, Options{Command: []string{"sh", "-c", "echo x >&2; kill -KILL $$"}, StderrTo: w})
	s.ExpectExit(Status{Signal: unix.SIGKILL})
}
