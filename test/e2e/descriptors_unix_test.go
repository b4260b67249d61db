//go:build unix

package e2e

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// wantNumbers compares the server's descriptors: none is missing, and none of
// ours is among them.
func wantNumbers(t *testing.T, r childReport, want ...int) {
	t.Helper()
	slices.Sort(want)
	if got := r.numbers(); !slices.Equal(got, want) {
		t.Errorf("the server has descriptors %v, want %v", got, want)
	}
}

// What the server gets: the client's own descriptors, and the word about them.
func TestDescriptors(t *testing.T) {
	null := identityOfPath(t, os.DevNull)
	for _, stray := range []string{"stderr", "null", "log", "file:stray"} {
		for _, stdin := range []string{"null", "lifeline"} {
			for _, kind := range []string{"pipe", "file", "socket"} {
				t.Run(fmt.Sprintf("%s/%s/stderr is a %s", stray, stdin, kind), func(t *testing.T) {
					t.Parallel()
					dir := t.TempDir()
					o := Options{Dir: dir, Sockets: kind == "socket", Flags: []string{"--stray=" + stray, "--stdin=" + stdin}}
					var stderr *os.File
					if kind == "file" {
						stderr = createFile(t, filepath.Join(dir, "stderr"))
						o.StderrTo = stderr
					}
					s := startServer(t, o)
					r := askReport(s)
					wantNumbers(t, r, 0, 1, 2, 3, 4)
					for _, d := range r.Files {
						if d.NonBlock {
							t.Errorf("descriptor %d does not block", d.Number)
						}
					}

					if kind != "socket" { // each end of a socket has its own identity
						wantPipe(t, r, 3, s.stdin)
						wantPipe(t, r, 4, s.out.file)
					}
					if isNull := r.file(0).ID == null; isNull != (stdin == "null") {
						t.Errorf("descriptor 0 is the null device: %v", isNull)
					}
					if isNull := r.file(1).ID == null; isNull != (stray == "null") {
						t.Errorf("descriptor 1 is the null device: %v", isNull)
					}
					// One pipe for both keeps the order of what is printed.
					if same := r.file(1).ID == r.file(2).ID; same != (stray == "stderr") {
						t.Errorf("descriptors 1 and 2 are the same: %v", same)
					}
					switch kind {
					case "file": // can't block: handed down
						if got, want := r.file(2).ID, identityOf(t, stderr); got != want {
							t.Errorf("descriptor 2 is %s, want the file, %s", got, want)
						}
					case "pipe":
						if r.file(2).ID == identityOf(t, s.err.file) {
							t.Error("descriptor 2 is the client's own: the client could block the server")
						}
					}

					for name, want := range map[string]string{
						"WIREGUARDRUN_IN":  "3",
						"WIREGUARDRUN_OUT": "4",
						"WIREGUARDRUN_HANDOVER": fmt.Sprintf("v1;mode=fds;in=3@%s;out=4@%s;stdin=%s;stdout=%s",
							r.file(3).ID, r.file(4).ID, r.file(0).ID, r.file(1).ID),
					} {
						if got, _ := r.getenv(name); got != want {
							t.Errorf("%s is %s, want %s", name, got, want)
						}
					}
					if r.Group != r.Pid {
						t.Errorf("the server, %d, is in group %d", r.Pid, r.Group)
					}
					finish(s)
				})
			}
		}
	}
}

// What we inherit reaches the server under its number, wherever the wire goes.
func TestInheritedDescriptors(t *testing.T) {
	var crowd []int
	for n := range 28 {
		crowd = append(crowd, 13+n)
	}
	for _, tt := range []struct {
		name      string
		inherited []int
		in        int // and the next one is out
		flags     []string
		toFile    bool // stderr
	}{
		{"5 and 9", []int{5, 9}, 3, nil, false},
		{"a high one", []int{200}, 3, nil, false},
		{"right behind the wire", []int{5, 6, 7, 8}, 3, nil, false},
		{"3", []int{3}, 5, nil, false},
		{"4", []int{4}, 5, nil, false},
		{"3 and 4", []int{3, 4}, 5, nil, false},
		{"3, 6 and 8", []int{3, 6, 8}, 9, nil, false},
		{"3 to 11", []int{3, 4, 5, 6, 7, 8, 9, 10, 11}, 13, nil, false},
		// The start has to move some of its own out of the way here.
		{"no room", append([]int{3, 5, 7, 9}, crowd...), 11, []string{"--stray=null"}, true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			path := filepath.Join(t.TempDir(), "inherited")
			f := createFile(t, path)
			// The file comes as 3, and is put where it can't be in the way first.
			steps := []string{"dup:3:300", "close:3"}
			for _, n := range tt.inherited {
				steps = append(steps, fmt.Sprintf("dup:300:%d", n))
			}
			o := prepared(Options{Role: server, Files: []*os.File{f}, Flags: tt.flags}, append(steps, "close:300")...)
			if tt.toFile {
				o.StderrTo = createFile(t, filepath.Join(t.TempDir(), "stderr"))
			}
			s := start(t, o)
			r := askReport(s)
			wantNumbers(t, r, append([]int{0, 1, 2, tt.in, tt.in + 1}, tt.inherited...)...)
			for _, n := range tt.inherited {
				if got, want := r.file(n).ID, identityOf(t, f); got != want {
					t.Errorf("descriptor %d is %s, want the inherited file, %s", n, got, want)
				}
			}
			for name, want := range map[string]int{"IN": tt.in, "OUT": tt.in + 1} {
				if got, _ := r.getenv("WIREGUARDRUN_" + name); got != fmt.Sprint(want) {
					t.Errorf("WIREGUARDRUN_%s is %s, want %d", name, got, want)
				}
			}
			finish(s)
		})
	}
}

// Numbers that the environment gives a meaning are left alone.
func TestNumbersWithAMeaning(t *testing.T) {
	for _, tt := range []struct {
		env string
		in  int
	}{
		{"MAKEFLAGS= -j4 --jobserver-auth=3,4", 5},
		{"MAKEFLAGS=-j --jobserver-fds=4,5 -- A=3", 7},
		{"MAKEFLAGS= -j4 --jobserver-auth=fifo:/tmp/GMfifo1", 3},
		{"MAKEFLAGS=--jobserver-auth=-2,-2", 3},
		{"MAKEFLAGS=w --jobserver-auth=nonsense", 3},
		{"NODE_CHANNEL_FD=3", 5},
		{"NODE_CHANNEL_FD=4", 5},
		{"NODE_CHANNEL_FD=5", 3},
		{"NODE_CHANNEL_FD=", 3},
		{"LISTEN_FDS=1", 5},
		{"LISTEN_FDS=3", 7},
		{"LISTEN_FDS=0", 3},
		{"LISTEN_FDS=-1", 3},
		{"LISTEN_FDS=many", 3},
	} {
		t.Run(tt.env, func(t *testing.T) {
			t.Parallel()
			s := startServer(t, Options{Env: []string{tt.env}})
			r := askReport(s)
			wantNumbers(t, r, 0, 1, 2, tt.in, tt.in+1)
			if got, _ := r.getenv("WIREGUARDRUN_IN"); got != fmt.Sprint(tt.in) {
				t.Errorf("WIREGUARDRUN_IN is %s, want %d", got, tt.in)
			}
			name, value, _ := strings.Cut(tt.env, "=")
			if got, _ := r.getenv(name); got != value {
				t.Errorf("%s is %q, want %q", name, got, value)
			}
			finish(s)
		})
	}
	t.Run("--env", func(t *testing.T) {
		s := startServer(t, Options{Env: []string{"NODE_CHANNEL_FD=3"}, Flags: []string{"--env=NODE_CHANNEL_FD=7"}})
		wantNumbers(t, askReport(s), 0, 1, 2, 3, 4)
		finish(s)
	})
}

// Sockets that were passed to us are the server's, which checks whose they are.
func TestListenPID(t *testing.T) {
	f := createFile(t, filepath.Join(t.TempDir(), "socket"))
	t.Run("ours", func(t *testing.T) {
		s := start(t, prepared(Options{
			Role: server, RoleArgs: []string{"", "a b", "\xff"}, Files: []*os.File{f}, Flags: []string{"--env=ADDED=x"},
		}, "listen:1"))
		r := askReport(s)
		wantNumbers(t, r, 0, 1, 2, 3, 5, 6)
		if got, _ := r.getenv("LISTEN_PID"); got != fmt.Sprint(r.Pid) {
			t.Errorf("LISTEN_PID is %s, and the server %d", got, r.Pid)
		}
		if got, _ := r.getenv("LISTEN_FDS"); got != "1" {
			t.Errorf("LISTEN_FDS is %s", got)
		}
		if got, _ := r.getenv("ADDED"); got != "x" {
			t.Errorf("ADDED is %q", got)
		}
		if got := fmt.Sprintf("%q", r.Args); got != `["" "a b" "\xff"]` {
			t.Errorf("arguments are %s", got)
		}
		if got, want := r.file(3).ID, identityOf(t, f); got != want {
			t.Errorf("descriptor 3 is %s, want %s", got, want)
		}
		if r.Group != r.Pid || r.Parent != s.Pid() {
			t.Errorf("the server, %d, has parent %d and group %d", r.Pid, r.Parent, r.Group)
		}
		s.Send("exit 9\n")
		s.ExpectEnd()
		s.ExpectExit(Status{Code: 9})
		wantStderr(s, "")
	})
	t.Run("another process's", func(t *testing.T) {
		s := startServer(t, Options{Files: []*os.File{f}, Env: []string{"LISTEN_PID=1", "LISTEN_FDS=1"}})
		if got, _ := askReport(s).getenv("LISTEN_PID"); got != "1" {
			t.Errorf("LISTEN_PID is %s", got)
		}
		finish(s)
	})
	t.Run("script without a first line", func(t *testing.T) {
		dir := t.TempDir()
		writeScript(t, filepath.Join(dir, "script"), `[ "$LISTEN_PID" = $$ ] && echo "mine $1" >&6`+"\n")
		o := prepared(Options{Dir: dir, Command: []string{"./script", "one"}, Files: []*os.File{f}}, "listen:1")
		if stdout, stderr, status := run(t, o, ""); stdout != "mine one\n" || stderr != "" || status != (Status{}) {
			t.Errorf("wire %q, standard error %q, %v", stdout, stderr, status)
		}
	})
	t.Run("not found", func(t *testing.T) {
		stdout, stderr, status := run(t, prepared(Options{Command: []string{"no-such-program"}}, "listen:1"), "")
		wantFailure(t, stdout, stderr, status, 127, "cannot find")
	})
	t.Run("bad interpreter", func(t *testing.T) {
		path := filepath.Join(t.TempDir(), "script")
		writeScript(t, path, "#!/no/such/interpreter\n")
		stdout, stderr, status := run(t, prepared(Options{Command: []string{path}}, "listen:1"), "")
		wantFailure(t, stdout, stderr, status, 126, "interpreter")
	})
}

// A descriptor that we only pass on must not be held open by us.
func TestInheritedEndsWithTheServer(t *testing.T) {
	r, w := newPipe(t)
	s := startServer(t, Options{Files: []*os.File{w}})
	w.Close()
	order(s, "close 3")
	if err := r.SetReadDeadline(limit(t)); err != nil {
		t.Fatal(err)
	}
	if n, err := r.Read(make([]byte, 1)); err != io.EOF {
		t.Errorf("read %d bytes, %v, want the end of the file", n, err)
	}
	r.Close()
	finish(s)
}

func TestProcessSubstitution(t *testing.T) {
	bash := needs(t, "bash")
	s := start(t, Options{
		Prefix: []string{bash, "-c", `exec "$0" "$@" <(echo substituted)`},
		Command: []string{"sh", "-c",
			`cat "$0" >&"$WIREGUARDRUN_OUT"; cat <&"$WIREGUARDRUN_IN" >&"$WIREGUARDRUN_OUT"`},
	})
	s.ExpectLine("substituted")
	s.Send("and the wire\n")
	s.ExpectLine("and the wire")
	finish(s)
	wantStderr(s, "")
}

// A standard descriptor that is closed at the start is as good as null.
func TestClosedDescriptors(t *testing.T) {
	null := identityOfPath(t, os.DevNull)
	for _, tt := range []struct {
		closed []int
		wire   []int // the server's descriptors that are null for it
	}{
		{[]int{0}, []int{3}},
		{[]int{1}, []int{4}},
		{[]int{2}, []int{1, 2}},
		{[]int{0, 1}, []int{3, 4}},
		{[]int{0, 2}, []int{1, 2, 3}},
		{[]int{1, 2}, []int{1, 2, 4}},
		{[]int{0, 1, 2}, []int{1, 2, 3, 4}},
	} {
		t.Run(fmt.Sprint(tt.closed), func(t *testing.T) {
			t.Parallel()
			path := filepath.Join(t.TempDir(), "report")
			var steps []string
			for _, n := range tt.closed {
				steps = append(steps, fmt.Sprintf("close:%d", n))
			}
			s := start(t, prepared(Options{Role: server, Env: []string{reportEnv + "=" + path}}, steps...))
			if !slices.Contains(tt.closed, 0) {
				s.Send("exit 42\n")
				s.ExpectExit(Status{Code: 42})
			} else {
				s.ExpectExit(Status{}) // its input has ended
			}
			if rest := s.Rest(); rest != "" {
				t.Errorf("standard output has %q", rest)
			}
			wantStderr(s, "")
			r := readReport(t, path)
			wantNumbers(t, r, 0, 1, 2, 3, 4)
			for _, d := range r.Files {
				want := slices.Contains(append(tt.wire, 0), d.Number)
				if isNull := d.ID == null; isNull != want {
					t.Errorf("descriptor %d is null: %v, want %v", d.Number, isNull, want)
				}
			}
		})
	}
	t.Run("not found", func(t *testing.T) {
		s := start(t, prepared(Options{Command: []string{"no-such-program"}}, "close:0", "close:1"))
		s.ExpectExit(Status{Code: 127})
		if !strings.Contains(s.Stderr(), "cannot find") {
			t.Errorf("standard error has %q", s.Stderr())
		}
	})
}

// fullDisk is a file on a disk without room. Not every system has one.
func fullDisk(t *testing.T) *os.File {
	t.Helper()
	full, err := os.OpenFile("/dev/full", os.O_WRONLY, 0)
	if errors.Is(err, fs.ErrNotExist) {
		t.Skip("there is no /dev/full")
	} else if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { full.Close() })
	return full
}

// What is wrong with the wire is the server's to find, as it is without us.
func TestBadStdout(t *testing.T) {
	t.Run("full disk", func(t *testing.T) {
		s := startServer(t, Options{Stdout: fullDisk(t)})
		s.Send("err \"alive\\n\"\n")
		s.ExpectExit(Status{Code: brokenWire})
		wantStderr(s, "alive\nserver: answer: write wire out: no space left on device\n")
	})
	t.Run("full disk, for the last bytes of a relay", func(t *testing.T) {
		// They are on their way to the client when the server has ended: the
		// pipe is kept, and more may follow on their line.
		script := `read ping; printf '%s' "$1"; sleep 60 & exit 3`
		s := start(t, Options{
			Flags: []string{"--wire=stdio"}, Stdout: fullDisk(t),
			Command: []string{"sh", "-c", script, "sh", strings.TrimSpace(pong)},
		})
		s.Send(ping)
		s.ExpectExit(Status{Code: 125})
		if !strings.Contains(s.Stderr(), "cannot write to standard output") {
			t.Errorf("standard error has %q", s.Stderr())
		}
	})
	t.Run("nobody reads", func(t *testing.T) {
		r, w := newPipe(t)
		r.Close()
		s := startServer(t, Options{Stdout: w})
		s.Send("err \"alive\\n\"\n")
		s.ExpectExit(Status{Code: brokenWire})
		wantStderr(s, "alive\nserver: answer: write wire out: broken pipe\n")
	})
	t.Run("nobody reads, and a signal says so", func(t *testing.T) {
		r, w := newPipe(t)
		r.Close()
		s := start(t, Options{Stdout: w, Command: []string{"sh", "-c", `echo x >&4; echo not reached >&2`}})
		s.ExpectExit(Status{Signal: unix.SIGPIPE})
		wantStderr(s, "")
	})
	t.Run("the reader goes away", func(t *testing.T) {
		s := startServer(t, Options{})
		order(s, `err "alive\n"`)
		s.CloseStdout()
		s.Send("err \"still\\n\"\n")
		s.ExpectExit(Status{Code: brokenWire})
		wantStderr(s, "alive\nstill\nserver: answer: write wire out: broken pipe\n")
	})
}

// With a relay it is ours to find, and to tell.
func TestBadWireOfARelay(t *testing.T) {
	for _, wire := range []string{"auto", "stdio"} {
		t.Run(wire+"/full disk", func(t *testing.T) {
			s := start(t, Options{Stdout: fullDisk(t), Flags: []string{"--wire=" + wire}, Command: []string{"sh", "-c", `read x; echo "$x"; exec sleep 60`}})
			s.Send(pong)
			s.ExpectExit(Status{Code: 125})
			wantStderr(s, "wireguardrun: cannot write to standard output, so the server is ended: no space left on device\n"+
				"wireguardrun: hint: make room on the disk that it is redirected to\n")
		})
		t.Run(wire+"/directory", func(t *testing.T) {
			dir, err := os.Open(t.TempDir())
			if err != nil {
				t.Fatal(err)
			}
			defer dir.Close()
			s := start(t, Options{Stdin: dir, Flags: []string{"--wire=" + wire}, Command: []string{"sleep", "60"}})
			s.ExpectEnd()
			s.ExpectExit(Status{Code: 125})
			wantStderr(s, "wireguardrun: cannot read standard input, so the server is ended: is a directory\n"+
				"wireguardrun: hint: the server needs one that can be read\n")
		})
	}
}

// One socket may be both directions.
func TestOneSocketForBoth(t *testing.T) {
	theirs, ours, err := socketPair()
	if err != nil {
		t.Fatal(err)
	}
	defer theirs.Close()
	s := start(t, Options{Role: mirror, Stdin: theirs, Stdout: theirs})
	theirs.Close()
	s.out = s.read(ours, "<")
	if _, err := ours.WriteString("there and back\n"); err != nil {
		t.Fatal(err)
	}
	s.ExpectLine("there and back")
	onDescriptor(t, ours, func(fd int) error { return unix.Shutdown(fd, unix.SHUT_WR) })
	s.ExpectEnd()
	s.ExpectExit(Status{})
	wantStderr(s, "")
}

// The server's descriptors block, and afterwards ours are what they were.
func TestNonBlocking(t *testing.T) {
	for _, nonblock := range []bool{true, false} {
		t.Run(fmt.Sprint(nonblock), func(t *testing.T) {
			in, inOurs := newPipe(t)
			outOurs, out := newPipe(t)
			errOurs, stderr := newPipe(t)
			defer in.Close()
			all := []*os.File{in, out, stderr}
			var steps []string
			for n := range all {
				if nonblock {
					steps = append(steps, fmt.Sprintf("nonblock:%d", n))
				}
			}
			s := start(t, prepared(Options{Role: server, Stdin: in, Stdout: out, StderrTo: stderr}, steps...))
			s.stdin = inOurs
			// Our copies of the descriptors stay, to see the flags.
			s.out, s.err = s.read(outOurs, "<"), s.read(errOurs, "!")
			for _, d := range askReport(s).Files {
				if d.NonBlock {
					t.Errorf("the server's descriptor %d does not block", d.Number)
				}
			}
			order(s, `out "stray\n"`)
			s.CloseStdin()
			s.WaitExit()
			for n, f := range all {
				onDescriptor(t, f, func(fd int) error {
					flags, err := unix.FcntlInt(uintptr(fd), unix.F_GETFL, 0)
					if got := flags&unix.O_NONBLOCK != 0; got != nonblock {
						t.Errorf("O_NONBLOCK of our descriptor %d is %v, was %v", n, got, nonblock)
					}
					return err
				})
				f.Close()
			}
			s.ExpectEnd()
			s.ExpectExit(Status{})
			wantStderr(s, "stray\n")
		})
	}
}
