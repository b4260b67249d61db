//go:build unix

package e2e

import (
	"encoding/json"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// A failure ends the run also where nobody reads what there is to say of it.
func TestFailureStderrFull(t *testing.T) {
	for name, tt := range map[string]struct {
		o    Options
		code int
	}{
		"wrong use": {Options{Flags: []string{"--no-such-flag"}}, 125},
		"not found": {Options{Command: []string{"no-such-program"}}, 127},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r, w := newPipe(t)
			defer r.Close()
			onDescriptor(t, w, func(fd int) error {
				for {
					if _, err := unix.Write(fd, make([]byte, 512)); errors.Is(err, unix.EAGAIN) {
						return nil
					} else if err != nil {
						return err
					}
				}
			})
			tt.o.StderrTo = w
			s := start(t, tt.o)
			s.ExpectEnd()
			s.ExpectExit(Status{Code: tt.code})
		})
	}
}

// reporter prints many lines that grow as JSON, each with a word beside it on
// standard error.
var reporter = role("reporter", func() int {
	line := strings.Repeat("\x01", 20<<10) + "\n"
	for range 100 {
		if _, err := io.WriteString(os.Stdout, line); err != nil {
			return 1
		}
		for range 50 {
			if _, err := io.WriteString(os.Stderr, "{}\n"); err != nil {
				return 1
			}
		}
	}
	return 0
})

// A file that is standard error for us and for the server gets whole lines from
// both, however long ours are. (Wine does not append in one step.)
func TestStrayLogBesideTheServer(t *testing.T) {
	path := filepath.Join(t.TempDir(), "stderr")
	f, err := os.OpenFile(path, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	s := start(t, Options{
		Role: reporter, StderrTo: f,
		Flags: []string{"--wire=auto", "--stray=log", "--log-format=json"},
	})
	s.ExpectEnd()
	s.ExpectExit(Status{})
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(text)) {
		if !json.Valid([]byte(line)) {
			t.Fatalf("a line is torn: %s", clip(line))
		}
	}
	if n := strings.Count(string(text), `"stray output"`); n != 100 {
		t.Errorf("%d lines of stray output, want 100", n)
	}
}
