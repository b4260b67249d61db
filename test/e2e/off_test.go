package e2e

import (
	"fmt"
	"path/filepath"
	"testing"
)

// Switched off, the command runs as if we were not there: what it prints is on
// the wire.
func TestOff(t *testing.T) {
	for _, value := range []string{"1", "true", "yes"} {
		t.Run(value, func(t *testing.T) {
			s := startServer(t, Options{
				Env:   []string{"WIREGUARDRUN_OFF=" + value},
				Flags: []string{"--stray=null", "--stdin=lifeline", "--env=ADDED=x"},
			})
			s.Send("out \"stray\\n\"\n")
			s.Expect("stray\nok\n")
			r := askReport(s)
			wantNoWord(t, r)
			if got, _ := r.getenv("ADDED"); got != "x" {
				t.Errorf("ADDED is %q", got)
			}
			order(s, `err "for people\n"`)
			s.Send("exit 42\n")
			s.ExpectEnd()
			s.ExpectExit(Status{Code: 42})
			wantStderr(s, "for people\n")
		})
	}
}

func TestOffDirectory(t *testing.T) {
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	s := startServer(t, Options{Env: []string{"WIREGUARDRUN_OFF=1"}, Flags: []string{"--cwd=" + dir}})
	if got := askReport(s).Dir; got != dir {
		t.Errorf("the directory is %s, want %s", got, dir)
	}
	finish(s)
}

func TestOffNotStarted(t *testing.T) {
	dir := t.TempDir()
	for _, tt := range []struct {
		command string
		flags   []string
		code    int
		message string
	}{
		{"no-such-program", nil, 127, "cannot find"},
		{dir, nil, 126, "cannot execute"},
		{"x", []string{"--cwd=" + filepath.Join(dir, "none")}, 125, "cannot enter the directory"},
		{"x", []string{"--no-such-flag"}, 125, "unknown flag --no-such-flag"},
		{"x", []string{"--stray=nonsense"}, 125, "must be stderr, null, log or file:PATH"},
	} {
		t.Run(fmt.Sprint(tt.command, tt.flags), func(t *testing.T) {
			o := Options{Command: []string{tt.command}, Flags: tt.flags, Env: []string{"WIREGUARDRUN_OFF=1"}}
			stdout, stderr, status := run(t, o, "")
			wantFailure(t, stdout, stderr, status, tt.code, tt.message)
		})
	}
}

// An inner guard that is switched off leaves the outer one's wire to the
// server.
func TestOffWithinAGuard(t *testing.T) {
	argv, env := roleCommand(server)
	s := start(t, Options{
		Command: append([]string{wireguardrun, "--wire=fds", "--"}, argv...),
		Flags:   []string{"--env=WIREGUARDRUN_OFF=1"},
		Env:     env,
	})
	order(s, `out "stray\n"`)
	finish(s)
	wantStderr(s, "stray\n")
}
