//go:build unix

package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"
)

// launcher is a session with a script that ends in the server on 0 and 1. In
// the script $0 is wireguardrun and $@ the server.
func launcher(script string, o Options) Options {
	argv, env := roleCommand(server)
	o.Command = append([]string{"sh", "-c", script, wireguardrun}, argv...)
	o.Env = append(env, o.Env...)
	return o
}

func TestAttach(t *testing.T) {
	for _, tt := range []struct {
		name, script string
		extra        []int // descriptors that the server gets beside 0 to 2
	}{
		{"banners", `echo banner; echo more >&2; exec "$0" attach -- "$@"`, nil},
		{"without exec", `echo banner; echo more >&2; "$0" attach "$@"; exit $?`, nil},
		{"after its own use of descriptors", `echo banner; exec 5>&1; echo more >&2; exec "$0" attach -- "$@"`, []int{5}},
		{"after a look at the wire's numbers", `echo banner; echo more >&2; [ "$WIREGUARDRUN_IN" = 3 ] && exec "$0" attach -- "$@"`, nil},
		{"with stdin from the null device", `echo banner; echo more >&2; exec "$0" attach -- "$@" </dev/null`, nil},
		{"in a launcher's launcher", `echo banner; exec sh -c 'echo more >&2; exec "$0" attach -- "$@"' "$0" "$@"`, nil},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			s := start(t, launcher(tt.script, Options{}))
			r := askReport(s)
			wantNumbers(t, r, append([]int{0, 1, 2}, tt.extra...)...)
			wantPipe(t, r, 0, s.stdin)
			wantPipe(t, r, 1, s.out.file)
			for _, n := range tt.extra {
				if r.file(n).ID != r.file(2).ID {
					t.Errorf("descriptor %d is %s, want the diversion, %s", n, r.file(n).ID, r.file(2).ID)
				}
			}
			wantNoWord(t, r)
			order(s, `err "from the server\n"`)
			s.Send("exit 8\n")
			s.ExpectEnd()
			s.ExpectExit(Status{Code: 8})
			wantStderr(s, "banner\nmore\nfrom the server\n")
		})
	}
}

// Without a wire that is certain there is no guess.
func TestAttachRefused(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	for _, tt := range []struct{ name, script, message string }{
		{"input's number reused", `exec 3</dev/null; exec "$0" attach -- "$@"`, "(wire in, descriptor 3)"},
		{"output's number reused", `exec 4>"$FILE"; exec "$0" attach -- "$@"`, "(wire out, descriptor 4)"},
		{"wire lost", `exec 3<&- 4>&-; exec "$0" attach -- "$@"`, "(wire in, descriptor 3)"},
		{"stdout redirected", `exec "$0" attach -- "$@" >"$FILE"`, "(stdout, descriptor 1)"},
		{"stdin redirected", `echo x >"$FILE"; exec "$0" attach -- "$@" <"$FILE"`, "(stdin, descriptor 0)"},
		{"unknown version", `WIREGUARDRUN_HANDOVER="v9;x" exec "$0" attach -- "$@"`, `version "v9" is not supported`},
		{"nonsense", `WIREGUARDRUN_HANDOVER=x exec "$0" attach -- "$@"`, "use one version of wireguardrun for both"},
		{"no word of it", `unset WIREGUARDRUN_HANDOVER; exec "$0" attach -- "$@"`, "no wire was handed down"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			report := filepath.Join(t.TempDir(), "report")
			o := launcher(tt.script, Options{Env: []string{"FILE=" + file, reportEnv + "=" + report}})
			stdout, stderr, status := run(t, o, "report\n")
			wantFailure(t, stdout, stderr, status, 125, tt.message)
			if _, err := os.Stat(report); err == nil {
				t.Error("the server was started")
			}
		})
	}
	t.Run("stdout redirected, in auto", func(t *testing.T) {
		o := launcher(`exec "$0" attach -- "$@" >"$FILE"`, Options{Env: []string{"FILE=" + file}, Flags: []string{"--wire=auto"}})
		stdout, stderr, status := run(t, o, "")
		wantFailure(t, stdout, stderr, status, 125, "(stdout, descriptor 1)")
	})
	t.Run("with --wire=stdio", func(t *testing.T) {
		o := launcher(`exec "$0" attach -- "$@"`, Options{Flags: []string{"--wire=stdio"}})
		stdout, stderr, status := run(t, o, "")
		wantFailure(t, stdout, stderr, status, 125, "with --wire=stdio leave attach out")
	})
	t.Run("outside of any guard", func(t *testing.T) {
		stdout, stderr, status := run(t, Options{Flags: []string{"attach"}, Role: server}, "report\n")
		wantFailure(t, stdout, stderr, status, 125, "no wire was handed down")
	})
}

func TestAttachNotStarted(t *testing.T) {
	for _, tt := range []struct {
		command string
		code    int
		message string
	}{
		{"no-such-program", 127, "cannot find"},
		{"/", 126, "cannot execute"},
	} {
		t.Run(tt.command, func(t *testing.T) {
			o := Options{Command: []string{"sh", "-c", `exec "$0" attach -- ` + tt.command, wireguardrun}}
			stdout, stderr, status := run(t, o, "")
			wantFailure(t, stdout, stderr, status, tt.code, tt.message)
		})
	}
}

// The wire comes through whole.
func TestAttachBytes(t *testing.T) {
	argv, env := roleCommand(swapper)
	s := start(t, Options{
		Command: append([]string{"sh", "-c", `echo banner; exec "$0" attach -- "$@"`, wireguardrun}, argv...),
		Env:     env,
	})
	s.Send(randomText(2))
	s.Expect(randomText(1))
	s.CloseStdin()
	if line := s.ReadLine(); line[:len(fmt.Sprint(megabytes))] != fmt.Sprint(megabytes) {
		t.Errorf("the server received %s", line)
	}
	s.ExpectEnd()
	s.ExpectExit(Status{})
	wantStderr(s, "banner\n")
}
