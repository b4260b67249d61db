package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/windows"
)

// underWine: there are things that Wine does in its own way.
func underWine() bool {
	return windows.NewLazySystemDLL("ntdll.dll").NewProc("wine_get_version").Find() == nil
}

// batchServer is a folder with a script that starts a role.
func batchServer(t *testing.T, role string) (dir string, env []string) {
	t.Helper()
	argv, env := roleCommand(role)
	dir = filepath.Join(t.TempDir(), "a folder & more")
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	writeFile(t, filepath.Join(dir, "tool.cmd"), "@echo off\r\necho stray by echo\r\n\""+argv[0]+"\" %*\r\n")
	return dir, env
}

// A script is found by PATHEXT, and every argument stays one and means nothing
// to cmd.exe. What the script itself prints is kept off the wire.
func TestBatchServer(t *testing.T) {
	dir, env := batchServer(t, server)
	args := []string{
		"plain", "two words", "x&echo INJECTED", "x&&echo INJECTED", "a|more", "a>file", "a<file", "caret^", "(x)", "!x!",
		"--flag=a,b;c", `C:\dir\`, "é 日本", "", "'single'",
	}
	if !underWine() { // its cmd.exe lacks the trick by which they stay
		args = append(args, "100%", "%PATH%", "%CD% & %ERRORLEVEL%")
	}
	for _, name := range []string{"tool", "tool.cmd", filepath.Join(dir, "tool")} {
		s := start(t, Options{Command: append([]string{name}, args...), Env: append(env, "PATH="+dir+";"+os.Getenv("PATH"))})
		var got []string
		for _, arg := range askReport(s).Args {
			got = append(got, string(arg))
		}
		if want := fmt.Sprintf("%q", args); fmt.Sprintf("%q", got) != want {
			t.Errorf("%s: arguments are %q, want %s", name, got, want)
		}
		finish(s)
		wantStderr(s, "stray by echo\r\n")
	}
}

func TestBatchServerRelayed(t *testing.T) {
	for _, wire := range []string{"auto", "stdio"} {
		dir, env := batchServer(t, speaker)
		s := start(t, Options{Flags: []string{"--wire=" + wire, "--log-level=off"}, Command: []string{filepath.Join(dir, "tool"), "a b", "c"}, Env: env})
		s.Send(ping)
		s.Expect(pong)
		finish(s)
		wantStderr(s, "stray by echo\r\na b|c\n")
	}
}

// What cmd.exe would make something else of is refused.
func TestBatchRefused(t *testing.T) {
	dir, env := batchServer(t, server)
	for name, tt := range map[string]struct{ arg, want string }{
		"line break": {"a\nb", "can't take an argument with a line break"},
		"length":     {strings.Repeat("x", 9000), "8191 characters at most"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			stdout, stderr, status := run(t, Options{Command: []string{filepath.Join(dir, "tool.cmd"), tt.arg}, Env: env}, "")
			if stdout != "" || !strings.Contains(stderr, tt.want) || status != (Status{Code: 126}) {
				t.Errorf("standard output %q, standard error %q, %v", stdout, stderr, status)
			}
		})
	}
}

// Paths that are longer than old programs can take.
func TestLongPaths(t *testing.T) {
	dir := t.TempDir()
	for len(dir) < 300 {
		dir = filepath.Join(dir, strings.Repeat("long ", 9)+"x")
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	argv, env := roleCommand(server)
	if !underWine() { // it cuts the paths of programs
		program, err := os.ReadFile(argv[0])
		if err != nil {
			t.Fatal(err)
		}
		argv[0] = filepath.Join(dir, "server.exe")
		writeFile(t, argv[0], string(program))
	}
	stray := filepath.Join(dir, "stray.log")
	s := start(t, Options{Flags: []string{"--stray=file:" + stray}, Command: argv, Env: env})
	order(s, `out "kept\n"`)
	finish(s)
	if text, err := os.ReadFile(stray); string(text) != "kept\n" {
		t.Errorf("the stray file has %q, %v", text, err)
	}
}
