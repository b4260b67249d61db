//go:build unix

package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
)

// The wire in the hands of a shell, as people try it first.
func TestShell(t *testing.T) {
	for _, tt := range []struct {
		name, script  string
		input         string
		wire, strayed string
		code          int
	}{
		{"request and answer", `echo stray; read x <&3; echo "got $x" >&4`, "hello\n", "got hello\n", "stray\n", 0},
		{"by the variables", `echo stray; read x <&$WIREGUARDRUN_IN; echo "got $x" >&$WIREGUARDRUN_OUT`, "hello\n", "got hello\n", "stray\n", 0},
		{"whole streams", `cat <&3 >&4; echo done`, "a\nb", "a\nb", "done\n", 0},
		{"its own stdin is empty", `cat; cat <&3 >&4`, "x\n", "x\n", "", 0},
		{"a background job", `{ echo later; } & wait; cat <&3 >&4`, "x\n", "x\n", "later\n", 0},
		{"order on both", `echo 1; echo 2 >&2; echo 3; echo 4 >&2; cat <&3`, "", "", "1\n2\n3\n4\n", 0},
		{"wire closed, status kept", `exec 3<&- 4>&-; echo closed; exit 7`, "nobody reads this\n", "", "closed\n", 7},
		{"last command's status", `false`, "", "", "", 1},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			stdout, stderr, status := run(t, Options{Flags: []string{"--log-level=error"}, Command: []string{"sh", "-c", tt.script}}, tt.input)
			if stdout != tt.wire || stderr != tt.strayed || status != (Status{Code: tt.code}) {
				t.Errorf("wire %q, standard error %q, %v", stdout, stderr, status)
			}
		})
	}
}

// A server that has closed its wire may live on, and the session with it.
func TestServerClosesItsWire(t *testing.T) {
	r, w := newPipe(t)
	defer r.Close()
	s := start(t, Options{
		Command: []string{"sh", "-c", `exec 3<&- 4>&-; echo closed; read x <&5; exit "$x"`},
		Prefix:  []string{"sh", "-c", `exec 5<&3 3<&-; exec "$0" "$@"`},
		Files:   []*os.File{r},
	})
	s.WaitStderr("closed\n")
	w.WriteString("7\n")
	s.ExpectEnd()
	s.ExpectExit(Status{Code: 7})
}

// writeScript makes an executable file.
func writeScript(t *testing.T, path, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o777); err != nil {
		t.Fatal(err)
	}
	writeFile(t, path, text)
	if err := os.Chmod(path, 0o777); err != nil {
		t.Fatal(err)
	}
}

func TestLookUp(t *testing.T) {
	dir := t.TempDir()
	tell := func(name string) string { return "#!/bin/sh\necho " + name + " >&4\n" }
	writeScript(t, filepath.Join(dir, "a", "tool"), tell("a"))
	writeScript(t, filepath.Join(dir, "b", "tool"), tell("b"))
	writeScript(t, filepath.Join(dir, "b", "only-b"), tell("only-b"))
	writeFile(t, filepath.Join(dir, "a", "only-b"), "not executable\n")
	if err := os.MkdirAll(filepath.Join(dir, "a", "dir"), 0o777); err != nil {
		t.Fatal(err)
	}
	writeScript(t, filepath.Join(dir, "b", "dir"), tell("past the directory"))
	writeScript(t, filepath.Join(dir, "sub", "tool"), tell("sub"))
	writeScript(t, filepath.Join(dir, "no-interpreter"), "#!/no/such/interpreter\n")
	writeScript(t, filepath.Join(dir, "no-first-line"), `echo "no first line: $1 $#" >&4`+"\n")
	writeScript(t, filepath.Join(dir, "tool with spaces"), tell("spaces"))
	writeScript(t, filepath.Join(dir, "-h"), tell("dash"))

	// A link whose parent is not the one that its name says.
	if err := os.Mkdir(filepath.Join(dir, "deep"), 0o777); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(filepath.Join(dir, "sub"), filepath.Join(dir, "deep", "link")); err != nil {
		t.Fatal(err)
	}

	path := func(elements ...string) string { return "PATH=" + strings.Join(elements, ":") }
	in := func(name string) string { return filepath.Join(dir, name) }
	for _, tt := range []struct {
		name    string
		command string // and two arguments
		flags   []string
		env     string // of wireguardrun itself
		want    string // on the wire
		code    int
		message string
	}{
		{"our PATH", "tool", nil, path(in("a"), "/bin", "/usr/bin"), "a", 0, ""},
		{"PATH of --env", "tool", []string{"--env=" + path(in("b"), "/bin", "/usr/bin")}, path(in("a"), "/bin"), "b", 0, ""},
		{"last PATH of --env", "tool", []string{"--env=PATH=/bin", "--env=" + path(in("b"))}, path(in("a")), "b", 0, ""},
		{"past one that is not executable", "only-b", nil, path(in("a"), in("b")), "only-b", 0, ""},
		{"past a directory", "dir", nil, path(in("a"), in("b")), "past the directory", 0, ""},
		{"past what is no directory", "tool", nil, path(in("no-interpreter"), in("none"), in("b")), "b", 0, ""},
		{"relative to --cwd", "./tool", []string{"--cwd=" + in("sub")}, "", "sub", 0, ""},
		{"relative to ours", "sub/tool", nil, "", "sub", 0, ""},
		{"up from --cwd", "../b/tool", []string{"--cwd=sub"}, "", "b", 0, ""},
		{"up from a link", "../b/tool", []string{"--cwd=deep/link"}, "", "b", 0, ""},
		{"relative PATH from --cwd", "tool", []string{"--cwd=sub"}, path("../b"), "b", 0, ""},
		{"empty PATH element", "tool", []string{"--cwd=sub"}, path("", "/bin"), "sub", 0, ""},
		{"absolute", in("a/tool"), nil, "", "a", 0, ""},
		{"spaces", in("tool with spaces"), nil, "", "spaces", 0, ""},
		{"spaces in PATH", "tool with spaces", nil, path(dir, "/bin"), "spaces", 0, ""},
		{"like a flag", "-h", nil, path(dir, "/bin"), "dash", 0, ""},
		{"no first line", "./no-first-line", nil, "", "no first line: one 2", 0, ""},
		{"no first line, --cwd", "../no-first-line", []string{"--cwd=sub"}, "", "no first line: one 2", 0, ""},
		{"bad interpreter", "./no-interpreter", nil, "", "", 126, "is the interpreter of its first line (#!), or its loader, installed?"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			o := Options{Dir: dir, Command: []string{tt.command, "one", "two"}, Flags: tt.flags}
			if tt.env != "" {
				o.Env = []string{tt.env}
			}
			stdout, stderr, status := run(t, o, "")
			if tt.code != 0 {
				wantFailure(t, stdout, stderr, status, tt.code, tt.message)
				return
			}
			if stdout != tt.want+"\n" || stderr != "" || status != (Status{}) {
				t.Errorf("wire %q, standard error %q, %v", stdout, stderr, status)
			}
		})
	}
}

// What is no text is passed on as it is.
func TestEnvironmentBytes(t *testing.T) {
	s := startServer(t, Options{
		Env:   []string{"INHERITED=\xff\xfe", "\xc3\x28=name"},
		Flags: []string{"--env=ADDED=\xff\n"},
	})
	report := askReport(s)
	for name, want := range map[string]string{"INHERITED": "\xff\xfe", "\xc3\x28": "name", "ADDED": "\xff\n"} {
		if got, ok := report.getenv(name); !ok || got != want {
			t.Errorf("%q is %q (set: %v), want %q", name, got, ok, want)
		}
	}
	finish(s)
}

// What only root may do, for a user who is not root.
func TestNoPermission(t *testing.T) {
	dir := t.TempDir()
	for name, mode := range map[string]os.FileMode{"closed": 0, "read-only": 0o555} {
		if err := os.Mkdir(filepath.Join(dir, name), mode); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { os.Chmod(filepath.Join(dir, name), 0o777) })
	}
	for _, tt := range []struct {
		name    string
		flags   []string
		code    int
		message string
	}{
		{"directory", []string{"--cwd=" + filepath.Join(dir, "closed")}, 125, "cannot enter the directory"},
		{"stray file", []string{"--stray=file:" + filepath.Join(dir, "read-only", "stray")}, 125, "give the path of a regular file that you may write"},
		{"PATH", []string{"--env=PATH=" + filepath.Join(dir, "closed")}, 127, "in PATH="},
	} {
		t.Run(tt.name, func(t *testing.T) {
			o := Options{Command: []string{"true"}, Flags: tt.flags}
			if os.Getuid() == 0 {
				if runtime.GOOS != "linux" {
					t.Skip("needs Linux, or a user who is not root")
				}
				o = prepared(o, fmt.Sprintf("user:%d", 65534))
			}
			stdout, stderr, status := run(t, o, "")
			wantFailure(t, stdout, stderr, status, tt.code, tt.message)
			if !strings.Contains(stderr, "permission denied") && tt.code != 127 {
				t.Errorf("standard error has %q, and not why", stderr)
			}
		})
	}
}
