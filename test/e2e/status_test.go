package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
)

// The server's exit status is ours, whatever it means elsewhere.
func TestExitStatus(t *testing.T) {
	codes := []int{0, 1, 2, 42, 64, 125, 126, 127, 128, 130, 254, 255}
	if runtime.GOOS == "windows" {
		ctrlC := uint32(0xC000013A)
		codes = append(codes, 256, int(ctrlC))
	}
	for _, code := range codes {
		t.Run(fmt.Sprint(code), func(t *testing.T) {
			t.Parallel()
			s := startServer(t, Options{})
			order(s, `out "stray"`)
			s.Send(fmt.Sprintf("exit %d\n", code))
			s.ExpectEnd()
			s.ExpectExit(Status{Code: code})
			wantStderr(s, "stray")
		})
	}
}

// quitter ends at once, with an argument once it has read a byte.
var quitter = role("quitter", func() int {
	if len(os.Args) > 1 {
		_, _ = os.Stdin.Read(make([]byte, 1))
	}
	return 3
})

// A server that served nobody is told of, with how it ended and where to look.
func TestServerDiesAtOnce(t *testing.T) {
	for _, tt := range []struct {
		wire string
		args []string
		want string
	}{
		{"fds", nil, fmt.Sprintf("input of the client unread  bytes=%d status=3\n", len(ping))},
		{"auto", []string{"read"}, "without sending a message  status=3\n"},
		{"stdio", []string{"read"}, "without sending a message  status=3\n"},
	} {
		t.Run(tt.wire, func(t *testing.T) {
			r, w := newPipe(t)
			defer r.Close()
			if _, err := w.WriteString(ping); err != nil {
				t.Fatal(err)
			}
			w.Close()
			s := start(t, Options{Role: quitter, RoleArgs: tt.args, Flags: []string{"--wire=" + tt.wire}, Stdin: r})
			s.ExpectEnd()
			s.ExpectExit(Status{Code: 3})
			if got := s.Stderr(); !strings.Contains(got, tt.want) || !strings.Contains(got, "what it has printed on standard error may tell why") {
				t.Errorf("standard error has %q, want %q and a hint in it", got, tt.want)
			}
		})
	}
}

// What the server had written before its end arrives, whenever it is read.
func TestServerDiesAfterOutput(t *testing.T) {
	r, w := newPipe(t)
	s := startServer(t, Options{Stdout: w})
	w.Close()
	s.Send("err \"last words\\n\"\nexit 4\n")
	s.ExpectExit(Status{Code: 4})
	s.out = s.read(r, "<")
	s.ExpectLine("ok")
	s.ExpectEnd()
	wantStderr(s, "last words\n")
}

func TestNotStarted(t *testing.T) {
	dir := t.TempDir()
	writeFile(t, filepath.Join(dir, "data"), "no program\n")
	inDir := func(name string) string { return filepath.Join(dir, name) }
	type test struct {
		name    string
		argv    []string
		flags   []string
		code    int
		message string
	}
	tests := []test{
		{"not in PATH", []string{"no-such-program"}, nil, 127, `cannot find "no-such-program" in PATH=`},
		{"not in the PATH of --env", []string{"no-such-program"}, []string{"--env=PATH=" + dir}, 127, "in PATH=" + dir + "\n"},
		{"no PATH", []string{"no-such-program"}, []string{"--env=PATH="}, 127, "in PATH=\nwireguardrun: hint: PATH is empty or not set"},
		{"no such path", []string{inDir("none")}, nil, 127, "cannot find the program"},
		{"no such relative path", []string{"./none"}, nil, 127, "cannot find the program"},
		{"a whole command line in one word", []string{"node server.js"}, nil, 127, "spaces in its name"},
		{"a directory", []string{dir}, nil, 126, "cannot execute"},
		{"directory is missing", []string{"x"}, []string{"--cwd=" + inDir("none")}, 125, `cannot enter the directory "` + inDir("none") + `"`},
		{"directory is a file", []string{"x"}, []string{"--cwd=" + inDir("data")}, 125, `cannot enter the directory "` + inDir("data") + `"`},
	}
	if runtime.GOOS != "windows" {
		tests = append(tests,
			test{"below a file", []string{inDir("data") + "/x"}, nil, 127, "cannot find the program"},
			test{"not executable", []string{inDir("data")}, nil, 126, "permission denied"},
			test{"only one that is not executable", []string{"data"}, []string{"--env=PATH=" + dir}, 126, "permission denied"},
		)
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			stdout, stderr, status := run(t, Options{Command: tt.argv, Flags: tt.flags}, "a request\n")
			wantFailure(t, stdout, stderr, status, tt.code, tt.message)
		})
	}
}

// A start that fails leaves the streams as they were: the client may go on
// with something else.
func TestNotStartedLeavesTheStreams(t *testing.T) {
	r, w := newPipe(t)
	defer r.Close()
	out, err := os.Create(filepath.Join(t.TempDir(), "out"))
	if err != nil {
		t.Fatal(err)
	}
	defer out.Close()
	s := start(t, Options{Command: []string{"no-such-program"}, Stdin: r, Stdout: out})
	s.ExpectExit(Status{Code: 127})
	w.WriteString("still there")
	w.Close()
	second := start(t, Options{Role: mirror, Stdin: r, Stdout: out})
	second.ExpectExit(Status{})
	wantFile(t, out.Name(), "still there")
}
