package e2e

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// noise is one print of the server, beside the wire.
type noise struct {
	how  string // the server's command
	text string
}

// everyNoise comes before, between and after frames, by the server and by a
// process that it starts, on both descriptors, as a whole line and not, and
// looks like a frame.
var everyNoise = []noise{
	{"out", "banner\n"},
	{"err", "banner on stderr\n"},
	{"spawn", "a subprocess\n"},
	{"out", "\r[#  ]\r[## ]"},
	{"err", "in between\n"},
	{"out", `{"jsonrpc":"2.0","id":1,"result":{}}` + "\n"},
	{"out", "\x00\xff\r\n"},
	{"spawn", "no line end"},
	{"err", "\n"},
	{"last", "good-bye\n"},
}

// makeNoise has the server print it all, checks that each frame is alone on
// the wire, and ends the session.
func makeNoise(s *session) {
	s.t.Helper()
	useRole(printer)
	for _, n := range everyNoise {
		order(s, fmt.Sprintf("%s %q", n.how, n.text))
	}
	finish(s)
}

// allOf joins the texts of everyNoise that were printed in one of these ways.
func allOf(hows ...string) string {
	var b strings.Builder
	for _, n := range everyNoise {
		for _, how := range hows {
			if n.how == how {
				b.WriteString(n.text)
			}
		}
	}
	return b.String()
}

var (
	onBoth   = allOf("out", "spawn", "last", "err")
	onStdout = allOf("out", "spawn", "last")
	onStderr = allOf("err")
)

func TestStray(t *testing.T) {
	const old = "from an earlier run, no line end"
	for _, tt := range []struct {
		flag   string
		stderr string
		file   string // what is in the file "stray" afterwards, which had old
	}{
		{"", onBoth, old},
		{"--stray=stderr", onBoth, old},
		{"--stray=null", onStderr, old},
		{"--stray=file:stray", onStderr, old + onStdout},
		{"--stray=file:./no/../stray", onStderr, old + onStdout},
	} {
		for _, kind := range []string{"pipe", "file"} {
			t.Run(tt.flag+"/stderr is a "+kind, func(t *testing.T) {
				t.Parallel()
				dir := t.TempDir()
				path := filepath.Join(dir, "stray")
				writeFile(t, path, old)
				if err := os.Mkdir(filepath.Join(dir, "no"), 0o777); err != nil {
					t.Fatal(err)
				}
				o := Options{Dir: dir, Flags: []string{"--cwd=no"}} // no matter for the path
				if tt.flag != "" {
					o.Flags = append(o.Flags, tt.flag)
				}
				if kind == "file" {
					o.StderrTo = createFile(t, filepath.Join(dir, "stderr"))
				}
				s := startServer(t, o)
				makeNoise(s)
				if kind == "pipe" {
					wantStderr(s, tt.stderr)
				} else {
					wantFile(t, filepath.Join(dir, "stderr"), tt.stderr)
				}
				wantFile(t, path, tt.file)
			})
		}
	}
}

// With --stray=log each line on descriptor 1 is a message of ours, and no
// other line is touched.
func TestStrayLog(t *testing.T) {
	for _, format := range []string{"text", "json"} {
		for _, kind := range []string{"pipe", "file"} {
			t.Run(format+"/stderr is a "+kind, func(t *testing.T) {
				path := filepath.Join(t.TempDir(), "stderr")
				o := Options{Flags: []string{"--stray=log", "--log-format=" + format}}
				if kind == "file" {
					o.StderrTo = createFile(t, path)
				}
				s := startServer(t, o)
				order(s, `out "one\n"`, `out "half"`, `err "for people\n"`, `out " and half\r\n"`, `out "no end"`)
				finish(s)
				got := s.Stderr()
				if kind == "file" {
					text, err := os.ReadFile(path)
					if err != nil {
						t.Fatal(err)
					}
					got = string(text)
				}
				if strings.Count(got, "for people\n") != 1 {
					t.Errorf("standard error has %q", got)
				}
				got = strings.Replace(got, "for people\n", "", 1)
				if format == "text" {
					want := "wireguardrun: stray output  source=stdout line=one\n" +
						"wireguardrun: stray output  source=stdout line=\"half and half\"\n" +
						"wireguardrun: stray output  source=stdout line=\"no end\"\n"
					if got != want {
						t.Errorf("standard error has %q, want %q", got, want)
					}
					return
				}
				var lines []string
				for line := range strings.Lines(got) {
					var event struct{ Level, Time, Message, Source, Line string }
					if err := json.Unmarshal([]byte(line), &event); err != nil {
						t.Errorf("%q: %v", line, err)
					}
					if event.Level != "info" || event.Time == "" || event.Message != "stray output" || event.Source != "stdout" {
						t.Errorf("%q: an event of another kind", line)
					}
					lines = append(lines, event.Line)
				}
				if want := `["one" "half and half" "no end"]`; fmt.Sprintf("%q", lines) != want {
					t.Errorf("lines are %q, want %s", lines, want)
				}
			})
		}
	}
}

// Messages that are not wanted are not written, wherever they come from.
func TestStrayLogLevel(t *testing.T) {
	s := startServer(t, Options{Flags: []string{"--stray=log", "--log-level=warn"}})
	order(s, `out "one\n"`, `err "for people\n"`)
	finish(s)
	wantStderr(s, "for people\n")
}

func TestStrayFileRotation(t *testing.T) {
	path := filepath.Join(t.TempDir(), "stray")
	s := startServer(t, Options{Flags: []string{"--stray=file:" + path, "--stray-max=100"}})
	line := func(n int) string { return fmt.Sprintf("%d%s\n", n, strings.Repeat("x", 58)) }
	for n := range 4 {
		order(s, fmt.Sprintf("out %q", line(n)))
	}
	finish(s)
	wantStderr(s, "")
	wantFile(t, path, line(3))
	wantFile(t, path+".1", line(2))
}

// A stray file that can't be had ends the run before the server starts.
func TestStrayFileRefused(t *testing.T) {
	for _, tt := range []struct{ name, path, message string }{
		{"no directory", filepath.Join("none", "stray"), "create its directory first"},
		{"a directory", ".", "not a regular file"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			dir := t.TempDir()
			stdout, stderr, status := run(t, Options{
				Dir: dir, Role: server, Flags: []string{"--stray=file:" + tt.path},
				Env: []string{reportEnv + "=" + filepath.Join(dir, "report")},
			}, "report\n")
			wantFailure(t, stdout, stderr, status, 125, tt.message)
			if _, err := os.Stat(filepath.Join(dir, "report")); err == nil {
				t.Error("the server was started")
			}
		})
	}
}

// A file that is the wire is for nothing else.
func TestFileIsTheWire(t *testing.T) {
	path := filepath.Join(t.TempDir(), "out")
	for _, flag := range []string{"--stray=file:" + path, "--summary=" + path} {
		for _, wire := range []string{"fds", "auto"} {
			t.Run(flag[:6]+wire, func(t *testing.T) {
				out := createFile(t, path)
				s := start(t, Options{Stdout: out, Flags: []string{"--wire=" + wire, flag}, Role: server})
				s.ExpectExit(Status{Code: 125})
				if got := s.Stderr(); !strings.Contains(got, path+" is standard output, which is for") {
					t.Errorf("standard error has %q", got)
				}
				wantFile(t, path, "")
			})
		}
	}
}

// A client that never reads standard error must not stop the wire, nor the
// end of the session.
func TestStderrNeverRead(t *testing.T) {
	for _, flag := range []string{"--stray=stderr", "--stray=log"} {
		t.Run(flag, func(t *testing.T) {
			t.Parallel() // at the end we try for a moment to deliver the rest
			r, w := newPipe(t)
			defer r.Close()
			s := startServer(t, Options{StderrTo: w, Flags: []string{flag}})
			w.Close()
			for range 50 {
				order(s, "flood 200000", `out "stray\n"`)
			}
			finish(s)
		})
	}
}

// What nobody reads is dropped, oldest first, and the gap is named.
func TestStderrReadLate(t *testing.T) {
	r, w := newPipe(t)
	s := startServer(t, Options{StderrTo: w})
	w.Close()
	for range 50 {
		order(s, "flood 200000")
	}
	order(s, `err "the last line\n"`)
	s.err = s.read(r, "!")
	s.WaitStderr("the last line\n")
	finish(s)
	got := s.Stderr()
	pieces := gapNotice.Split(got, -1)
	if len(pieces) == 1 {
		t.Fatalf("there is no word of a gap in %d bytes: %s", len(got), clip(got))
	}
	for i, piece := range pieces {
		rest := strings.ReplaceAll(piece, strings.Repeat("x", 99)+"\n", "")
		switch {
		case i == len(pieces)-1:
			if rest != "the last line\n" {
				t.Errorf("after the last gap there is %s", clip(rest))
			}
		case len(rest) > 100 || strings.Trim(rest, "x") != "" && strings.Trim(rest, "x") != "\n":
			// Only the line before a gap may be cut.
			t.Errorf("before gap %d there is %s", i, clip(rest))
		}
	}
}

var gapNotice = regexp.MustCompile(`wireguardrun: output of the server is missing here: nobody read it in time  bytes=\d+\n`)

// Nor must one whose reader of standard error is gone.
func TestStderrReaderGone(t *testing.T) {
	for _, flag := range []string{"--stray=stderr", "--stray=log", "--stray=null"} {
		t.Run(flag, func(t *testing.T) {
			r, w := newPipe(t)
			s := startServer(t, Options{StderrTo: w, Flags: []string{flag}})
			w.Close()
			order(s, `err "while it lives\n"`)
			r.Close()
			for range 5 {
				order(s, "flood 100000", `out "stray\n"`, `err "x\n"`)
			}
			finish(s)
		})
	}
}

// startMerged starts with standard error the same pipe as standard output, as
// after 2>&1. Expect and the like then see both.
func startMerged(t *testing.T, o Options) *session {
	t.Helper()
	r, w := newPipe(t)
	o.Stdout, o.StderrTo = w, w
	s := start(t, o)
	w.Close()
	s.out = s.read(r, "<")
	return s
}

// When standard error is the wire, neither the server nor we print there.
func TestStderrIsWire(t *testing.T) {
	for _, flag := range []string{"--stray=stderr", "--stray=log", "--stray=null"} {
		t.Run(flag, func(t *testing.T) {
			t.Parallel()
			makeNoise(startMerged(t, Options{Role: server, Flags: []string{flag, "--log-level=debug"}}))
		})
	}
	t.Run("--stray=file", func(t *testing.T) {
		path := filepath.Join(t.TempDir(), "stray")
		makeNoise(startMerged(t, Options{Role: server, Flags: []string{"--stray=file:" + path}}))
		wantFile(t, path, onBoth)
	})
}

// A failure before anything was on the wire is told, even there.
func TestStderrIsWireEarlyFailure(t *testing.T) {
	s := startMerged(t, Options{Command: []string{"no-such-program"}})
	if got := s.Rest(); !strings.HasPrefix(got, `wireguardrun: cannot find "no-such-program" in PATH=`) {
		t.Errorf("nothing is said of the failure, but %q", got)
	}
	s.ExpectExit(Status{Code: 127})
}

// newPipe returns a pipe; the write end is closed at the end of the test at
// the latest. Whoever reads closes the other.
func newPipe(t *testing.T) (r, w *os.File) {
	t.Helper()
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { w.Close() })
	return r, w
}

func writeFile(t *testing.T, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o666); err != nil {
		t.Fatal(err)
	}
}

// createFile returns a new file, which is closed at the end of the test.
func createFile(t *testing.T, path string) *os.File {
	t.Helper()
	f, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { f.Close() })
	return f
}

func wantFile(t *testing.T, path, want string) {
	t.Helper()
	got, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if string(got) != want {
		t.Errorf("%s has %s, want %s", filepath.Base(path), clip(string(got)), clip(want))
	}
}

// wantFailure checks a run that failed on our part: nothing on standard
// output, and on standard error a line that has the message.
func wantFailure(t *testing.T, stdout, stderr string, status Status, code int, message string) {
	t.Helper()
	if stdout != "" {
		t.Errorf("standard output has %q", stdout)
	}
	first, _, _ := strings.Cut(stderr, "\n")
	if !strings.HasPrefix(first, "wireguardrun: ") || !strings.Contains(stderr, message) {
		t.Errorf("standard error has %q, want a message with %q", stderr, message)
	}
	if status != (Status{Code: code}) {
		t.Errorf("ended with %v, want exit code %d", status, code)
	}
}
