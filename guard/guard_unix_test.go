//go:build unix

package guard

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/creack/pty"
	"golang.org/x/sys/unix"

	"github.com/wireguardrun/wireguardrun/internal/pipes"
)

func init() {
	strays = append(strays, struct {
		text  string
		print func(string) error
	}{"stray by write(2)", func(s string) error { _, err := unix.Write(1, []byte(s+"\n")); return err }})
}

// kind is a sort of object that the standard streams can be.
type kind struct {
	name string
	// open returns what the child gets, a way to send to it, and one to
	// read what it wrote, after its end.
	open func(t *testing.T) (stdin, stdout *os.File, send func(string), received func() string)
}

func kinds() []kind {
	return []kind{
		{"pipe", func(t *testing.T) (*os.File, *os.File, func(string), func() string) {
			stdin, client := newPipe(t)
			wire, stdout := newPipe(t)
			return stdin, stdout, sendAll(t, client, client.Close), readAfter(t, wire, stdout)
		}},
		{"socketpair", func(t *testing.T) (*os.File, *os.File, func(string), func() string) {
			client, server := newSocketpair(t)
			shut := func() error { return unix.Shutdown(int(client.Fd()), unix.SHUT_WR) }
			return server, server, sendAll(t, client, shut), readAfter(t, client, server)
		}},
		{"terminal", func(t *testing.T) (*os.File, *os.File, func(string), func() string) {
			client, server := newTerminal(t)
			return server, server, sendAll(t, client, func() error { return nil }), readAfter(t, client, server)
		}},
		{"FIFO", func(t *testing.T) (*os.File, *os.File, func(string), func() string) {
			in, out := filepath.Join(t.TempDir(), "in"), filepath.Join(t.TempDir(), "out")
			client, stdin := newFIFO(t, in), openFile(t, in, os.O_RDONLY)
			// Opening without a reader would wait.
			wire, stdout := newFIFO(t, out), openFile(t, out, os.O_WRONLY)
			return stdin, stdout, sendAll(t, client, client.Close), func() string {
				// The client's end is a writer too: there is no end of file.
				_ = stdout.Close()
				all := make([]byte, 1<<10)
				n, err := wire.Read(all)
				if err != nil {
					t.Error(err)
				}
				return string(all[:n])
			}
		}},
		{"regular file", func(t *testing.T) (*os.File, *os.File, func(string), func() string) {
			in, out := filepath.Join(t.TempDir(), "in"), filepath.Join(t.TempDir(), "out")
			client, stdin := openFile(t, in, os.O_WRONLY|os.O_CREATE), openFile(t, in, os.O_RDONLY)
			stdout := openFile(t, out, os.O_WRONLY|os.O_CREATE)
			return stdin, stdout, sendAll(t, client, client.Close), readAfter(t, openFile(t, out, os.O_RDONLY), stdout)
		}},
		{"null device", func(t *testing.T) (*os.File, *os.File, func(string), func() string) {
			null := openFile(t, os.DevNull, os.O_RDWR)
			return null, null, func(string) {}, func() string { return "" }
		}},
	}
}

func sendAll(t *testing.T, client *os.File, end func() error) func(string) {
	return func(text string) {
		if _, err := io.WriteString(client, text); err != nil {
			t.Error(err)
		}
		if err := end(); err != nil {
			t.Error(err)
		}
	}
}

// readAfter reads from client when the child has ended, and server, its end,
// with it.
func readAfter(t *testing.T, client, server *os.File) func() string {
	return func() string {
		_ = server.Close()
		all, err := io.ReadAll(client)
		if err != nil && !errors.Is(err, unix.EIO) { // the end of a terminal, on Linux
			t.Error(err)
		}
		return string(all)
	}
}

func openFile(t *testing.T, path string, flags int) *os.File {
	t.Helper()
	f, err := os.OpenFile(path, flags, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = f.Close() })
	return f
}

func newFIFO(t *testing.T, path string) *os.File {
	t.Helper()
	if err := unix.Mkfifo(path, 0o600); err != nil {
		t.Fatal(err)
	}
	return openFile(t, path, os.O_RDWR)
}

func newSocketpair(t *testing.T) (a, b *os.File) {
	t.Helper()
	syscall.ForkLock.RLock()
	fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM, 0)
	if err == nil {
		unix.CloseOnExec(fds[0])
		unix.CloseOnExec(fds[1])
	}
	syscall.ForkLock.RUnlock()
	if err != nil {
		t.Fatal(err)
	}
	a, b = os.NewFile(uintptr(fds[0]), "client"), os.NewFile(uintptr(fds[1]), "server")
	t.Cleanup(func() { _ = a.Close(); _ = b.Close() })
	return a, b
}

// newTerminal returns a terminal that passes bytes on unchanged.
func newTerminal(t *testing.T) (client, server *os.File) {
	t.Helper()
	client, server, err := pty.Open()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = client.Close(); _ = server.Close() })
	if err := stty(server, "raw", "-echo"); err != nil {
		t.Fatal(err)
	}
	return client, server
}

func stty(terminal *os.File, modes ...string) error {
	cmd := exec.Command("stty", modes...)
	cmd.Stdin = terminal
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("stty: %w: %s", err, out)
	}
	return nil
}

func init() {
	addRole("serve", func(t *childTest, _ []byte) {
		w, err := Claim()
		t.must(err)
		if (w.State() != Status{Diverted, Diverted}) || w.Err() != nil {
			t.errorf("state %v, errors %v", w.State(), w.Err())
		}
		echo(w)
		fmt.Println("stray")
		t.must(w.Release())
		fmt.Println("bye")
	})
}

func TestEveryKindOfStream(t *testing.T) {
	t.Parallel()
	for _, k := range kinds() {
		t.Run(k.name, func(t *testing.T) {
			c := newChild(t, "serve", nil)
			stdin, stdout, send, received := k.open(t)
			var stderr bytes.Buffer
			c.cmd.Stdin, c.cmd.Stdout, c.cmd.Stderr = stdin, stdout, &stderr
			send("one\n") // a file has to have it when the child reads
			c.start()
			c.ended()
			want := "echo one\nbye\n"
			if k.name == "null device" {
				want = ""
			}
			if got := received(); got != want {
				t.Errorf("the wire carried %q, want %q", got, want)
			}
			if got, want := stderr.String(), "stray\n"; got != want {
				t.Errorf("standard error got %q, want %q", got, want)
			}
		})
	}
}

// What is printed must not reach the wire by way of standard error, and be
// seen where a person looks at both.
func TestStandardErrorIsTheWire(t *testing.T) {
	t.Parallel()
	const wire, seen = "echo one\nbye\n", "echo one\nstray\nbye\n"
	for _, test := range []struct {
		name string
		kind string
		// stderr returns what standard error is; nil is the very file of
		// standard output.
		stderr func(t *testing.T, stdout *os.File) *os.File
		want   string
	}{
		{"pipe", "pipe", nil, wire},
		{"socketpair", "socketpair", nil, wire},
		{"FIFO", "FIFO", nil, wire},
		{"FIFO, opened twice", "FIFO", reopened, wire},
		{"regular file, opened twice", "regular file", reopened, wire},
		{"terminal", "terminal", nil, seen},
		{"terminal, opened twice", "terminal", reopened, seen},
	} {
		t.Run(test.name, func(t *testing.T) {
			c := newChild(t, "serve", nil)
			for _, k := range kinds() {
				if k.name != test.kind {
					continue
				}
				stdin, stdout, send, received := k.open(t)
				stderr := stdout
				if test.stderr != nil {
					stderr = test.stderr(t, stdout)
				}
				c.cmd.Stdin, c.cmd.Stdout, c.cmd.Stderr = stdin, stdout, stderr
				send("one\n")
				c.start()
				c.ended()
				if stderr != stdout {
					_ = stderr.Close()
				}
				if got := received(); got != test.want {
					t.Errorf("the wire carried %q, want %q", got, test.want)
				}
				return
			}
			t.Errorf("there is no kind %q", test.kind)
		})
	}
}

func reopened(t *testing.T, stdout *os.File) *os.File {
	return openFile(t, stdout.Name(), os.O_WRONLY|os.O_APPEND)
}

// viaShell lets the shell start the child with more redirections.
func (c *child) viaShell(redirections string) {
	c.cmd.Args = []string{"sh", "-c", `exec "$0" ` + redirections, c.cmd.Path}
	c.cmd.Path = "/bin/sh"
}

// "2>/dev/stdout" is a second opening of the pipe on Linux.
func TestStandardErrorReopened(t *testing.T) {
	t.Parallel()
	s := newSession(t, "serve", nil)
	s.viaShell("2>/dev/stdout")
	s.start()
	s.send("one\n")
	if got, want := s.end(), "echo one\nbye\n"; got != want {
		t.Errorf("the wire carried %q, want %q", got, want)
	}
}

func init() {
	addRole("holes", func(t *childTest, input []byte) {
		var stdinClosed bool
		t.must(json.Unmarshal(input, &stdinClosed))
		w, err := Claim()
		t.must(err)
		if (w.State() != Status{Diverted, Diverted}) || w.Err() != nil {
			t.errorf("state %v, errors %v", w.State(), w.Err())
		}
		for _, s := range []Stream{In, Out} {
			if w.Descriptor(s) < 3 {
				t.errorf("the private duplicate of %s is %d", s, w.Descriptor(s))
			}
		}
		all, err := io.ReadAll(w)
		t.must(err)
		if want := map[bool]string{true: "", false: "one"}[stdinClosed]; string(all) != want {
			t.errorf("read %q, want %q", all, want)
		}
		_, err = io.WriteString(w, "reply")
		t.must(err)
		fmt.Print("stray")
		t.must(w.Release())
	})
}

// A descriptor that is closed at the start counts as the null device.
func TestHolesAtTheStart(t *testing.T) {
	t.Parallel()
	for closed := 1; closed < 8; closed++ {
		var redirections string
		for fd, redirection := range []string{"<&- ", ">&- ", "2>&- "} {
			if closed&(1<<fd) != 0 {
				redirections += redirection
			}
		}
		t.Run(redirections, func(t *testing.T) {
			s := newSession(t, "holes", closed&1 != 0)
			s.viaShell(redirections)
			s.start()
			if closed&1 == 0 {
				s.send("one")
			}
			wire, stderr := "reply", "stray"
			if closed&2 != 0 {
				wire = ""
			}
			if closed&4 != 0 {
				stderr = ""
			}
			if got := s.end(); got != wire {
				t.Errorf("the wire carried %q, want %q", got, wire)
			}
			if got := s.stderr.String(); got != stderr {
				t.Errorf("standard error got %q, want %q", got, stderr)
			}
		})
	}
}

func init() {
	addRole("modes of two claims", func(t *childTest, _ []byte) {
		in, err := Claim(Only(In))
		t.must(err)
		t.must(unix.SetNonblock(int(in.Descriptor(In)), true))
		out, err := Claim(Only(Out)) // does not take that for what was before
		t.must(err)
		t.must(unix.SetNonblock(1, true))
		t.must(errors.Join(out.Release(), in.Release()))
		for fd := range uintptr(3) {
			if t.nonblocking(fd) {
				t.errorf("O_NONBLOCK of descriptor %d was left", fd)
			}
		}
	})
}

func TestModesOfTwoClaims(t *testing.T) {
	t.Parallel()
	s := newSession(t, "modes of two claims", nil)
	s.start()
	s.end()
}

func init() {
	addRole("many descriptors", func(t *childTest, _ []byte) {
		var limit unix.Rlimit
		t.must(unix.Getrlimit(unix.RLIMIT_NOFILE, &limit))
		var below []handle // more than select(2) can watch
		for high := handle(min(1100, limit.Cur/2)); len(below) == 0 || below[len(below)-1] < high; {
			h, err := pipes.Duplicate(0)
			t.must(err)
			below = append(below, h)
		}
		highest := below[len(below)-1]
		for spare := range 12 { // more than a claim needs
			low := limit
			assign(&low.Cur, int(highest)+1+spare)
			t.must(unix.Setrlimit(unix.RLIMIT_NOFILE, &low))
			w, err := Claim(Lifeline())
			t.must(err)
			echo(w)
			state, refused := w.State(), w.Err()
			for s, at := range []State{state.In, state.Out} {
				if w.Descriptor(Stream(s)) <= uintptr(highest) != (at == InPlace) {
					t.errorf("%d spare: %s is %s, on descriptor %d", spare, Stream(s), at, w.Descriptor(Stream(s)))
				}
			}
			if (refused == nil) != (state == Status{Diverted, Diverted}) && !errors.Is(refused, unix.EMFILE) {
				t.errorf("%d spare: state %v, errors %v", spare, state, refused)
			}
			if spare == 0 && state != (Status{InPlace, InPlace}) || spare == 11 && refused != nil {
				t.errorf("%d spare: state %v, errors %v", spare, state, refused)
			}
			t.must(w.Release())
			t.must(unix.Setrlimit(unix.RLIMIT_NOFILE, &limit))
		}
		for _, h := range below {
			t.must(pipes.Close(h))
		}
	})
}

// assign is for a field that has another type on each system.
func assign[T int64 | uint64](to *T, n int) { *to = T(n) }

// Descriptor numbers are high, and at first none is left.
func TestManyDescriptors(t *testing.T) {
	t.Parallel()
	s := newSession(t, "many descriptors", nil)
	s.start()
	s.send(strings.Repeat("x\n", 12))
	if got, want := s.end(), strings.Repeat("echo x\n", 12); got != want {
		t.Errorf("the wire carried %q, want %q", got, want)
	}
}

func init() {
	addRole("holes of its own", func(t *childTest, _ []byte) {
		for fd := range 3 {
			t.must(unix.Close(fd))
		}
		w, err := Claim()
		t.must(err)
		if (w.State() != Status{Diverted, Diverted}) || w.Err() != nil {
			t.errorf("state %v, errors %v", w.State(), w.Err())
		}
		f, err := os.CreateTemp("", "guard")
		t.must(err)
		echo(w)
		_, err = io.WriteString(w, "reply")
		t.must(err)
		fmt.Print("stray")
		t.must(w.Release())
		fmt.Print("printed")
		written, err := os.ReadFile(f.Name())
		if f.Fd() < 3 || err != nil || len(written) > 0 {
			t.errorf("a file that was opened is descriptor %d and has %q, %v", f.Fd(), written, err)
		}
		t.must(errors.Join(f.Close(), os.Remove(f.Name())))
		for fd := range handle(3) {
			if !pipes.IsNull(fd) {
				t.errorf("descriptor %d is not the null device", fd)
			}
		}
	})
}

// What the program closed itself must not be what it opens next.
func TestHolesAtTheClaim(t *testing.T) {
	t.Parallel()
	s := newSession(t, "holes of its own", nil)
	s.start()
	if got := s.end(); got != "" || s.stderr.Len() > 0 {
		t.Errorf("the wire carried %q, standard error %q", got, s.stderr.String())
	}
}

// events polls a descriptor without waiting.
func events(fd int) int16 {
	fds := []unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}
	_, _ = unix.Poll(fds, 0)
	return fds[0].Revents
}

func init() {
	roles["poll stdin"] = func([]byte) any { return events(0) }
	addRole("lifeline", func(t *childTest, _ []byte) {
		p := newProbes(t)
		defer p.close()
		w, err := Claim(Lifeline())
		t.must(err)
		lifeline, err := pipes.Duplicate(0)
		t.must(err)
		if !p.moved(In) || w.State().In != Diverted {
			t.errorf("in is %s", w.State().In)
		}
		var below int16
		t.must(subprocess("poll stdin", &below))
		if e := events(0); e != 0 || below != 0 {
			t.errorf("while it is held there are events %#x, in a subprocess %#x", e, below)
		}
		echo(w)
		// Its end is not that of the direction but of the claim.
		t.must(w.In().Close())
		if e := events(0); e != 0 {
			t.errorf("after In().Close there are events %#x", e)
		}
		t.must(w.Release())
		if e := events(int(lifeline)); e&unix.POLLHUP == 0 {
			t.errorf("after Release there are events %#x, want a hang-up", e)
		}
		t.must(pipes.Close(lifeline))
	})
}

func TestLifeline(t *testing.T) {
	t.Parallel()
	s := newSession(t, "lifeline", nil)
	s.start()
	s.send("one\n")
	if got, want := s.end(), "echo one\n"; got != want {
		t.Errorf("the wire carried %q, want %q", got, want)
	}
}

func TestInterruptedOnOtherKinds(t *testing.T) {
	t.Parallel()
	for name, open := range map[string]func(*testing.T) (client, server *os.File){
		"socketpair": newSocketpair,
		"terminal":   newTerminal,
	} {
		for _, in := range interruptions() {
			if name == "terminal" && in.Call == "write" {
				continue // can't be promised, see "Not guaranteed"
			}
			t.Run(name+"/"+in.Call+" by "+in.By, func(t *testing.T) {
				client, server := open(t)
				interrupt(t, in, server, server, func() int { return len(readAfter(t, client, server)()) })
			})
		}
	}
}

type deadReader struct{ InPlace bool }

func init() {
	addRole("dead reader", func(t *childTest, input []byte) {
		var in deadReader
		t.must(json.Unmarshal(input, &in))
		r := &registry{sys: realSystem()}
		want := Status{Diverted, Diverted}
		if in.InPlace {
			r.sys.duplicate = func(Stream) (handle, error) { return none, errInjected }
			want = Status{InPlace, InPlace}
		}
		w, err := r.claim(newConfig(nil))
		t.must(err)
		if w.State() != want {
			t.errorf("state %v, want %v", w.State(), want)
		}
		_, err = io.ReadAll(w) // ends when the client is gone
		t.must(err)
		for range 2 {
			var step *StepError
			if n, err := w.Write([]byte("x")); n != 0 || !errors.Is(err, unix.EPIPE) || !errors.As(err, &step) {
				t.errorf("wrote %d, %v", n, err)
			}
		}
		t.must(w.Release())
	})
}

// The process has to survive, also where the wire is descriptor 1 itself.
func TestDeadReader(t *testing.T) {
	t.Parallel()
	for _, in := range []deadReader{{}, {InPlace: true}} {
		t.Run(fmt.Sprintf("pipe/%+v", in), func(t *testing.T) {
			s := newSession(t, "dead reader", in)
			s.start()
			_, _ = s.out.Close(), s.in.Close()
			s.ended()
		})
		t.Run(fmt.Sprintf("socketpair/%+v", in), func(t *testing.T) {
			client, server := newSocketpair(t)
			c := newChild(t, "dead reader", in)
			c.cmd.Stdin, c.cmd.Stdout = server, server
			c.start()
			_, _ = server.Close(), client.Close()
			c.ended()
		})
	}
}

// nonblocking tells whether O_NONBLOCK is set on a descriptor.
func (t *childTest) nonblocking(fd uintptr) bool {
	flags, err := unix.FcntlInt(fd, unix.F_GETFL, 0)
	t.must(err)
	return flags&unix.O_NONBLOCK != 0
}

func init() {
	addRole("nonblocking", func(t *childTest, input []byte) {
		var before bool
		t.must(json.Unmarshal(input, &before))
		for fd := range 3 {
			t.must(unix.SetNonblock(fd, before))
		}
		w, err := Claim()
		t.must(err)
		wire := []uintptr{w.Descriptor(In), w.Descriptor(Out)}
		for s, fd := range wire {
			if t.nonblocking(fd) != before {
				t.errorf("the claim changed O_NONBLOCK of %s", Stream(s))
			}
		}
		// With nothing to read yet, and later with no room to write.
		done := make(chan struct{})
		go func() { defer close(done); echo(w) }()
		untilBlocked("pipes.readHandle")
		_, err = io.WriteString(w, "ready\n")
		t.must(err)
		<-done
		large := bytes.Repeat([]byte("x"), 1<<20)
		if n, err := w.Write(large); n != len(large) || err != nil {
			t.errorf("wrote %d, %v", n, err)
		}
		for s, fd := range wire {
			if t.nonblocking(fd) != before {
				t.errorf("reads or writes changed O_NONBLOCK of %s", Stream(s))
			}
		}

		for _, fd := range append(wire, 0, 1, 2) {
			t.must(unix.SetNonblock(int(fd), !before))
		}
		t.must(w.Release())
		for fd := range uintptr(3) {
			if t.nonblocking(fd) != before {
				t.errorf("after Release O_NONBLOCK of descriptor %d is %t", fd, !before)
			}
		}
	})
}

func TestNonblockingIsAsBefore(t *testing.T) {
	t.Parallel()
	for _, before := range []bool{false, true} {
		t.Run(fmt.Sprint(before), func(t *testing.T) {
			s := newSession(t, "nonblocking", before)
			s.start()
			ready := make([]byte, len("ready\n"))
			if _, err := io.ReadFull(s.out, ready); err != nil {
				t.Fatal(err)
			}
			s.send("one\n")
			want := "echo one\n" + strings.Repeat("x", 1<<20)
			if got := s.end(); got != want {
				t.Errorf("the wire carried %d bytes, want %d", len(got), len(want))
			}
		})
	}
}

func init() {
	addRole("terminal modes", func(t *childTest, _ []byte) {
		var before [3]pipes.Modes
		for fd := range before {
			m, err := pipes.ReadModes(handle(fd))
			t.must(err)
			before[fd] = m
		}
		w, err := Claim()
		t.must(err)
		// By a program that is given the terminal, as a password prompt is.
		terminal, err := pipes.Duplicate(2)
		t.must(err)
		f := os.NewFile(uintptr(terminal), "terminal")
		t.must(stty(f, "-echo", "-icanon", "min", "7"))
		changed, err := pipes.ReadModes(2)
		t.must(err)
		if changed == before[2] {
			t.errorf("stty has changed nothing")
		}
		t.must(f.Close())
		t.must(w.Release())
		for fd := range before {
			if m, err := pipes.ReadModes(handle(fd)); err != nil || m != before[fd] {
				t.errorf("descriptor %d: modes are not as before; %v", fd, err)
			}
		}
	})
}

func TestTerminalModesAreAsBefore(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name                   string
		onlyStderr, controlled bool
	}{
		{name: "all three"},
		{name: "the controlling terminal", controlled: true},
		{name: "standard error alone", onlyStderr: true},
	} {
		t.Run(test.name, func(t *testing.T) {
			_, terminal := newTerminal(t)
			if err := stty(terminal, "sane"); err != nil {
				t.Fatal(err)
			}
			c := newChild(t, "terminal modes", nil)
			c.cmd.Stdin, c.cmd.Stdout, c.cmd.Stderr = terminal, terminal, terminal
			if test.onlyStderr {
				c.cmd.Stdin, _ = newPipe(t)
				_, c.cmd.Stdout = newPipe(t)
			}
			if test.controlled {
				c.cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true, Ctty: 2}
			}
			c.start()
			c.ended()
		})
	}
}
