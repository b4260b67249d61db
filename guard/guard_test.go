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
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/wireguardrun/wireguardrun/internal/pipes"
)

// childTest is what a role that tests something inside a child has in place of
// a testing.T. Its report is what did not hold.
type childTest struct {
	failures []string
	closed   int // descriptors that the role closes for good
}

func (t *childTest) errorf(format string, args ...any) {
	t.failures = append(t.failures, fmt.Sprintf(format, args...))
}

// must ends the role when err is not nil.
func (t *childTest) must(err error) {
	if err != nil {
		t.errorf("%v", err)
		panic(t)
	}
}

// warmUp makes the runtime open what it then keeps.
func warmUp() {
	if r, w, err := os.Pipe(); err == nil {
		_, _ = r.Close(), w.Close()
	}
	openHandles()
}

// addRole registers a role that tests something. Each is also a test of leaks:
// it has to end with the descriptors and goroutines that it began with.
func addRole(name string, play func(t *childTest, input []byte)) {
	roles[name] = func(input []byte) any {
		t := &childTest{}
		warmUp()
		handles, goroutines := openHandles(), runtime.NumGoroutine()
		func() {
			defer func() {
				if stop := recover(); stop != nil && stop != any(t) { // see must
					panic(stop)
				}
			}()
			play(t, input)
		}()
		if len(t.failures) > 0 {
			return t.failures
		}
		// A call that was interrupted closes its descriptors as it returns.
		for limit := time.Now().Add(10 * time.Second); runtime.NumGoroutine() > goroutines && time.Now().Before(limit); {
			runtime.Gosched()
		}
		if extra := runtime.NumGoroutine() - goroutines; extra > 0 {
			stacks := make([]byte, 1<<16)
			t.errorf("%d goroutines were left:\n%s", extra, stacks[:runtime.Stack(stacks, true)])
		}
		if extra := openHandles() - handles + t.closed; extra != 0 {
			t.errorf("%d descriptors were left open", extra)
		}
		return t.failures
	}
}

// ended waits for a child in a role of addRole and reports what did not hold.
func (c *child) ended() {
	c.t.Helper()
	var failures []string
	c.wait(&failures)
	for _, f := range failures {
		c.t.Errorf("child: %s", f)
	}
}

// session is a child whose standard streams are pipes. The test is the client.
type session struct {
	*child
	in     io.WriteCloser
	out    io.ReadCloser
	stderr bytes.Buffer // complete after end
}

func newSession(t *testing.T, role string, input any) *session {
	t.Helper()
	s := &session{child: newChild(t, role, input)}
	var err error
	if s.in, err = s.cmd.StdinPipe(); err != nil {
		t.Fatal(err)
	}
	if s.out, err = s.cmd.StdoutPipe(); err != nil {
		t.Fatal(err)
	}
	s.cmd.Stderr = &s.stderr
	return s
}

func (s *session) send(text string) {
	s.t.Helper()
	if _, err := io.WriteString(s.in, text); err != nil {
		s.t.Fatal(err)
	}
}

// end closes the client's side, waits, and returns what the wire carried that
// has not been read yet.
func (s *session) end() string {
	s.t.Helper()
	if err := s.in.Close(); err != nil {
		s.t.Error(err)
	}
	wire, err := io.ReadAll(s.out)
	if err != nil {
		s.t.Error(err)
	}
	s.ended()
	if s.t.Failed() {
		s.t.Logf("standard error: %s", s.stderr.String())
	}
	return string(wire)
}

func newPipe(t *testing.T) (r, w *os.File) {
	t.Helper()
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = r.Close(); _ = w.Close() })
	return r, w
}

// subprocess runs a role with the standard streams that this process, itself
// a child, has now, and decodes its report into v.
func subprocess(role string, v any) error {
	self, err := os.Executable()
	if err != nil {
		return err
	}
	dir, err := os.MkdirTemp("", "guard")
	if err != nil {
		return err
	}
	report := filepath.Join(dir, "report")
	defer func() { _ = os.Remove(report); _ = os.Remove(dir) }()
	cmd := exec.Command(self)
	cmd.Env = append(os.Environ(), roleVariable+"="+role, reportVariable+"="+report)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
	if err := cmd.Run(); err != nil {
		return err
	}
	out, err := os.ReadFile(report)
	if err != nil {
		return err
	}
	return json.Unmarshal(out, v)
}

func init() {
	roles["print"] = func([]byte) any {
		_, err := fmt.Println("stray by a subprocess")
		return errorText(err)
	}
	roles["read stdin"] = func([]byte) any {
		all, _ := io.ReadAll(os.Stdin)
		return string(all)
	}
}

// probes are duplicates of the descriptors 0 and 1 at the time they were made,
// to find out later where these are.
type probes [2]handle

func newProbes(t *childTest) (p probes) {
	for s := range p {
		h, err := pipes.Duplicate(pipes.Standard(s))
		t.must(err)
		p[s] = h
	}
	return p
}

func (p probes) moved(s Stream) bool {
	return pipes.Compare(pipes.Standard(int(s)), p[s]) != pipes.Same
}

func (p probes) close() { _, _ = pipes.Close(p[0]), pipes.Close(p[1]) }

// untilBlocked waits until a goroutine is in function and in a system call.
func untilBlocked(function string) {
	stacks := make([]byte, 1<<20)
	for {
		for _, g := range strings.Split(string(stacks[:runtime.Stack(stacks, true)]), "\n\n") {
			head, _, _ := strings.Cut(g, "\n")
			if strings.Contains(head, "[syscall") && strings.Contains(g, function) {
				return
			}
		}
		runtime.Gosched()
	}
}

// captured is what code holds that looked at os.Stdout before the claim.
var captured = os.Stdout

// strays are the ways to print; guard_unix_test.go adds what only exists there.
var strays = []struct {
	text  string
	print func(text string) error
}{
	{"stray by fmt", func(s string) error { _, err := fmt.Println(s); return err }},
	{"stray by os.Stdout, captured before", func(s string) error { _, err := fmt.Fprintln(captured, s); return err }},
	{"stray by a subprocess", func(string) error {
		var failure string
		if err := subprocess("print", &failure); err != nil || failure != "" {
			return fmt.Errorf("%w %s", err, failure)
		}
		return nil
	}},
}

func printStrays(t *childTest) {
	for _, way := range strays {
		if err := way.print(way.text); err != nil {
			t.errorf("%s: %v", way.text, err)
		}
	}
}

func allStrays() string {
	var all strings.Builder
	for _, way := range strays {
		all.WriteString(way.text + "\n")
	}
	return all.String()
}

func init() {
	addRole("strays", func(t *childTest, input []byte) {
		var divertTo string
		t.must(json.Unmarshal(input, &divertTo))
		var opts []Option
		if divertTo != "" {
			f, err := os.Create(divertTo)
			t.must(err)
			opts = append(opts, DivertTo(f))
			defer func() { _ = f.Close() }()
		}
		w, err := Claim(opts...)
		t.must(err)
		if (w.State() != Status{Diverted, Diverted}) || w.Err() != nil {
			t.errorf("state %v, errors %v", w.State(), w.Err())
		}
		echo(w)
		printStrays(t)
		var stolen string
		t.must(subprocess("read stdin", &stolen))
		if stolen != "" {
			t.errorf("a subprocess read %q", stolen)
		}
		_, err = io.WriteString(w, "between\n")
		t.must(err)
		t.must(w.Release())
		// Back on the wire, and nothing was taken off it.
		rest, err := io.ReadAll(os.Stdin)
		t.must(err)
		fmt.Printf("then %s", rest)
	})
}

func TestStraysStayOffTheWire(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "diversion")
	for _, test := range []struct {
		name     string
		divertTo string
		merged   bool // 2>&1
		stderr   string
		file     string
	}{
		{name: "to stderr", stderr: allStrays()},
		{name: "to a file", divertTo: file, file: allStrays()},
		{name: "stderr is the wire", merged: true},
	} {
		t.Run(test.name, func(t *testing.T) {
			s := newSession(t, "strays", test.divertTo)
			if test.merged {
				s.cmd.Stderr = s.cmd.Stdout
			}
			s.start()
			s.send("one\ntwo\n")
			if got, want := s.end(), "echo one\nbetween\nthen two\n"; got != want {
				t.Errorf("the wire carried %q, want %q", got, want)
			}
			if got := s.stderr.String(); got != test.stderr {
				t.Errorf("standard error got %q, want %q", got, test.stderr)
			}
			if test.divertTo != "" {
				if got, err := os.ReadFile(file); err != nil || string(got) != test.file {
					t.Errorf("the file got %q, %v, want %q", got, err, test.file)
				}
			}
		})
	}
}

func init() {
	addRole("divert to a closed file", func(t *childTest, _ []byte) {
		r, f, err := os.Pipe()
		t.must(err)
		_, _ = r.Close(), f.Close()
		w, err := Claim(DivertTo(f))
		t.must(err)
		fmt.Println("stray")
		var step *StepError
		if !errors.As(w.Err(), &step) || step.Op != "open diversion" || step.Stream != Out {
			t.errorf("errors of the claim: %v", w.Err())
		}
		if w.State().Out != Diverted {
			t.errorf("out is %s", w.State().Out)
		}
		t.must(w.Release())
	})
}

// The null device does it where the diversion that was asked for can't.
func TestDivertToAClosedFile(t *testing.T) {
	t.Parallel()
	s := newSession(t, "divert to a closed file", nil)
	s.start()
	if got := s.end(); got != "" || s.stderr.Len() != 0 {
		t.Errorf("the wire carried %q, standard error %q", got, s.stderr.String())
	}
}

func init() {
	addRole("divert to the wire", func(t *childTest, _ []byte) {
		for _, f := range []*os.File{os.Stdout, os.Stderr} {
			w, err := Claim(DivertTo(f))
			t.must(err)
			fmt.Println("stray")
			if (w.State() != Status{Diverted, Diverted}) || w.Err() != nil {
				t.errorf("state %v, errors %v", w.State(), w.Err())
			}
			t.must(w.Release())
		}
	})
}

func TestDivertToTheWire(t *testing.T) {
	t.Parallel()
	s := newSession(t, "divert to the wire", nil)
	s.cmd.Stderr = s.cmd.Stdout
	s.start()
	if got := s.end(); got != "" {
		t.Errorf("the wire carried %q", got)
	}
}

// asked is a way to ask for the wire, with the directions that it takes.
type asked struct {
	name    string
	options []Option
	takes   [2]bool
}

var askings = []asked{
	{"in", []Option{Only(In)}, [2]bool{true, false}},
	{"out", []Option{Only(Out)}, [2]bool{false, true}},
	{"both", nil, [2]bool{true, true}},
	{"both, one by one", []Option{Only(In), Only(Out)}, [2]bool{true, true}},
}

func init() {
	addRole("refusal", func(t *childTest, _ []byte) {
		p := newProbes(t)
		defer p.close()
		for _, held := range askings {
			for _, asked := range askings {
				for how, take := range map[string]func(...Option) (*Wire, error){"Claim": Claim, "Open": Open} {
					stage := fmt.Sprintf("%s held, %s asked for by %s", held.name, asked.name, how)
					first, err := Claim(held.options...)
					t.must(err)
					t.serves(stage, p, held.takes, first)
					second, err := take(asked.options...)
					if held.takes[In] && asked.takes[In] || held.takes[Out] && asked.takes[Out] {
						if second != nil || !errors.Is(err, ErrClaimed) {
							t.errorf("%s: %v, %v", stage, second, err)
						}
						t.serves(stage+": refused", p, held.takes, first)
					} else {
						t.must(err)
						t.serves(stage+": granted", p, [2]bool{true, true}, first, second)
						t.must(second.Release())
						t.serves(stage+": released", p, held.takes, first)
					}
					t.must(first.Release())
					t.serves(stage+": all released", p, [2]bool{})
				}
			}
		}
	})
}

// serves checks that exactly the directions of taken are off the standard
// descriptors, and served by wires.
func (t *childTest) serves(stage string, p probes, taken [2]bool, wires ...*Wire) {
	for _, s := range []Stream{In, Out} {
		if p.moved(s) != taken[s] {
			t.errorf("%s: descriptor %d moved: %t", stage, s, p.moved(s))
		}
	}
	var states [2]State
	for _, w := range wires {
		for s, state := range []State{w.State().In, w.State().Out} {
			if state != Free {
				states[s] = state
			}
		}
		b := make([]byte, 1)
		if w.State().In == Diverted {
			if n, err := w.Read(b); n != 1 || err != nil || b[0] != 'i' {
				t.errorf("%s: read %q, %v", stage, b[:n], err)
			}
		}
		if w.State().Out == Diverted {
			if _, err := w.Write([]byte("o")); err != nil {
				t.errorf("%s: %v", stage, err)
			}
		}
	}
	if taken[Out] {
		fmt.Print("stray ")
	}
	for s, state := range states {
		if (state == Diverted) != taken[s] {
			t.errorf("%s: %s is %s", stage, Stream(s), state)
		}
	}
}

// A refused claim has taken nothing: neither direction is moved, the holder is
// served, and a direction that is free can still be claimed.
func TestSecondClaimIsRefused(t *testing.T) {
	t.Parallel()
	s := newSession(t, "refusal", nil)
	s.start()
	s.send(strings.Repeat("i", 1000))
	if wire := s.end(); wire == "" || strings.Trim(wire, "o") != "" {
		t.Errorf("the wire carried %q", wire)
	}
}

func init() {
	addRole("only", func(t *childTest, input []byte) {
		var s Stream
		t.must(json.Unmarshal(input, &s))
		w, err := Claim(Only(s))
		t.must(err)
		other := 1 - s
		want := map[Stream]Status{In: {In: Diverted}, Out: {Out: Diverted}}[s]
		if w.State() != want {
			t.errorf("state %v", w.State())
		}
		if w.Descriptor(s) == uintptr(none) || w.Descriptor(other) != uintptr(none) || w.Descriptor(7) != uintptr(none) {
			t.errorf("descriptors %d, %d and %d", w.Descriptor(s), w.Descriptor(other), w.Descriptor(7))
		}
		b := make([]byte, 3)
		left := map[Stream]func() (int, error){
			In:  func() (int, error) { return w.In().Read(b) },
			Out: func() (int, error) { return w.Out().Write(b) },
		}[other]
		var step *StepError
		if n, err := left(); n != 0 || !errors.Is(err, ErrNotClaimed) || !errors.As(err, &step) || step.Stream != other {
			t.errorf("the direction that was left out: %d, %v", n, err)
		}
		// The other direction is where it was.
		var in io.Reader = os.Stdin
		if s == In {
			fmt.Print("printed")
			in = w
		}
		if _, err := io.ReadFull(in, b); err != nil || string(b) != "one" {
			t.errorf("the way in had %q, %v", b, err)
		}
		t.must(errors.Join(w.In().Close(), w.Out().Close(), w.Release()))
	})
}

func TestOnlyLeavesTheOtherAlone(t *testing.T) {
	t.Parallel()
	for s, want := range map[Stream]string{In: "printed", Out: ""} {
		t.Run(s.String(), func(t *testing.T) {
			c := newSession(t, "only", s)
			c.start()
			c.send("one")
			if wire := c.end(); wire != want {
				t.Errorf("the wire carried %q, want %q", wire, want)
			}
		})
	}
}

// endings are the ways to end a Wire or a direction of it.
var endings = map[string]func(*Wire) error{
	"Release":   (*Wire).Release,
	"Close":     (*Wire).Close,
	"In.Close":  func(w *Wire) error { return w.In().Close() },
	"Out.Close": func(w *Wire) error { return w.Out().Close() },
}

func init() {
	addRole("endings", func(t *childTest, _ []byte) {
		p := newProbes(t)
		defer p.close()
		for _, steps := range []string{
			"Release Release", "Close Close", "Close Release", "Release Close",
			"In.Close Release", "Out.Close In.Close Close", "In.Close In.Close Release In.Close Close",
		} {
			w, err := Claim(Lifeline())
			t.must(err)
			for _, step := range strings.Fields(steps) {
				if err := endings[step](w); err != nil {
					t.errorf("%s: %s: %v", steps, step, err)
				}
			}
			if w.State() != (Status{}) || p.moved(In) || p.moved(Out) {
				t.errorf("%s: state %v, descriptors moved: %t, %t", steps, w.State(), p.moved(In), p.moved(Out))
			}
			if n, err := w.Read(make([]byte, 1)); n != 0 || !errors.Is(err, os.ErrClosed) {
				t.errorf("%s: read %d, %v", steps, n, err)
			}
			if n, err := w.Write([]byte("x")); n != 0 || !errors.Is(err, os.ErrClosed) {
				t.errorf("%s: wrote %d, %v", steps, n, err)
			}
		}

		w, err := Claim()
		t.must(err)
		t.must(w.In().Close())
		if _, err := w.Read(make([]byte, 1)); !errors.Is(err, os.ErrClosed) {
			t.errorf("read after In().Close: %v", err)
		}
		if !p.moved(In) || w.State().In != Diverted {
			t.errorf("In().Close ended the claim: in is %s", w.State().In)
		}
		_, err = io.WriteString(w.Out(), "out is open\n")
		t.must(err)
		t.must(w.Out().Close())
		if _, err := w.Write([]byte("x")); !errors.Is(err, os.ErrClosed) {
			t.errorf("write after Out().Close: %v", err)
		}
		fmt.Println("stray")
		t.must(w.Release())
		if all, err := io.ReadAll(os.Stdin); err != nil || string(all) != "unread" {
			t.errorf("standard input had %q, %v", all, err)
		}
	})
}

func TestEndings(t *testing.T) {
	t.Parallel()
	s := newSession(t, "endings", nil)
	s.start()
	s.send("unread")
	if wire := s.end(); wire != "out is open\n" {
		t.Errorf("the wire carried %q", wire)
	}
}

// A later Wire is not touched through an earlier one.
func init() {
	addRole("successor", func(t *childTest, _ []byte) {
		p := newProbes(t)
		defer p.close()
		for name, end := range endings {
			first, err := Claim()
			t.must(err)
			t.must(first.Release())
			second, err := Claim()
			t.must(err)
			t.must(end(first))
			t.serves(name, p, [2]bool{true, true}, second)
			t.must(second.Release())
		}
	})
}

func TestSuccessorIsLeftAlone(t *testing.T) {
	t.Parallel()
	s := newSession(t, "successor", nil)
	s.start()
	s.send(strings.Repeat("i", len(endings)))
	if wire := s.end(); wire != strings.Repeat("o", len(endings)) {
		t.Errorf("the wire carried %q", wire)
	}
}

// interruption is a call that waits, and what ends it.
type interruption struct{ Call, By string }

func interruptions() (all []interruption) {
	for _, by := range []string{"Release", "Close", "In.Close"} {
		all = append(all, interruption{"read", by})
	}
	for _, by := range []string{"Release", "Close", "Out.Close"} {
		all = append(all, interruption{"write", by})
	}
	return all
}

// full is more than any system keeps for a reader that does not read.
const full = 32 << 20

func init() {
	addRole("interrupted", func(t *childTest, input []byte) {
		var in interruption
		t.must(json.Unmarshal(input, &in))
		w, err := Claim()
		t.must(err)
		type result struct {
			n   int
			err error
		}
		results := make(chan result)
		const calls = 2 // the second one waits for the first
		for range calls {
			go func() {
				var r result
				if in.Call == "read" {
					r.n, r.err = w.Read(make([]byte, 10))
				} else {
					r.n, r.err = w.Write(make([]byte, full))
				}
				results <- r
			}()
		}
		untilBlocked("pipes." + in.Call + "Handle")
		t.must(endings[in.By](w))
		written := 0
		for range calls {
			r := <-results
			written += r.n
			var step *StepError
			if !errors.Is(r.err, os.ErrClosed) || !errors.As(r.err, &step) || step.Op != in.Call {
				t.errorf("%s ended by %s: %d, %v", in.Call, in.By, r.n, r.err)
			}
		}
		t.must(w.Release())
		// How much was written has to be told even so.
		fmt.Fprintln(os.Stderr, written)
	})
}

// interrupt runs one interruption in a child with these standard streams, of
// which nothing is read before the child has ended, and checks that the client
// got as much as Write said. received counts what is there to be read.
func interrupt(t *testing.T, in interruption, stdin, stdout *os.File, received func() int) {
	t.Helper()
	c := newChild(t, "interrupted", in)
	var stderr bytes.Buffer
	c.cmd.Stdin, c.cmd.Stdout, c.cmd.Stderr = stdin, stdout, &stderr
	c.start()
	c.ended()
	var written int
	if _, err := fmt.Sscan(stderr.String(), &written); err != nil {
		t.Fatalf("%q: %v", stderr.String(), err)
	}
	if got := received(); got != written {
		t.Errorf("the client got %d bytes, and Write told of %d", got, written)
	}
}

func TestInterrupted(t *testing.T) {
	t.Parallel()
	for _, in := range interruptions() {
		t.Run(in.Call+" by "+in.By, func(t *testing.T) {
			stdin, _ := newPipe(t)
			wire, stdout := newPipe(t)
			interrupt(t, in, stdin, stdout, func() int {
				_ = stdout.Close()
				all, err := io.ReadAll(wire)
				if err != nil {
					t.Error(err)
				}
				return len(all)
			})
		})
	}
}

func init() {
	addRole("end of file", func(t *childTest, _ []byte) {
		w, err := Claim()
		t.must(err)
		if all, err := io.ReadAll(w); err != nil || string(all) != "last" {
			t.errorf("read %q, %v", all, err)
		}
		if n, err := w.In().Read(make([]byte, 1)); n != 0 || !errors.Is(err, io.EOF) {
			t.errorf("read on: %d, %v", n, err)
		}
		_, err = io.WriteString(w, "still served")
		t.must(err)
		t.must(w.Release())
	})
}

func TestEndOfFile(t *testing.T) {
	t.Parallel()
	s := newSession(t, "end of file", nil)
	s.start()
	s.send("last")
	if wire := s.end(); wire != "still served" {
		t.Errorf("the wire carried %q", wire)
	}
}

const (
	writers        = 20
	linesPerWriter = 3
	lineLength     = 10_000
)

func init() {
	addRole("writers", func(t *childTest, _ []byte) {
		w, err := Claim()
		t.must(err)
		errs := make(chan error, writers)
		for i := range writers {
			line := append(bytes.Repeat([]byte{'a' + byte(i)}, lineLength-1), '\n')
			go func() {
				var failed error
				for range linesPerWriter {
					if n, err := w.Write(line); n != len(line) || err != nil {
						failed = fmt.Errorf("wrote %d: %w", n, err)
					}
				}
				errs <- failed
			}()
		}
		for range writers {
			t.must(<-errs)
		}
		t.must(w.Release())
	})
}

func TestWritesAreWhole(t *testing.T) {
	t.Parallel()
	s := newSession(t, "writers", nil)
	s.start()
	var wire []byte
	for piece := make([]byte, 777); ; { // a reader that takes little at a time
		n, err := s.out.Read(piece)
		wire = append(wire, piece[:n]...)
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if rest := s.end(); rest != "" {
		t.Errorf("%d bytes after the end", len(rest))
	}
	lines := map[string]int{}
	for line := range strings.Lines(string(wire)) {
		lines[line]++
	}
	for i := range writers {
		line := strings.Repeat(string(rune('a'+i)), lineLength-1) + "\n"
		if lines[line] != linesPerWriter {
			t.Errorf("%d whole lines of writer %d, want %d", lines[line], i, linesPerWriter)
		}
	}
	if len(wire) != writers*linesPerWriter*lineLength {
		t.Errorf("%d bytes arrived, want %d", len(wire), writers*linesPerWriter*lineLength)
	}
}

const crowdLine = "a line of the crowd\n"

func init() {
	addRole("crowd", func(t *childTest, _ []byte) {
		p := newProbes(t)
		defer p.close()
		var (
			latest atomic.Pointer[Wire] // whoever claimed it
			claims atomic.Int64
			crowd  sync.WaitGroup
			mu     sync.Mutex
		)
		complain := func(call string, err error) {
			mu.Lock()
			defer mu.Unlock()
			t.errorf("%s: %v", call, err)
		}
		// use does everything that may be done with a Wire that somebody else
		// may end at any time.
		use := func(w *Wire) {
			over := func(err error) bool { return errors.Is(err, os.ErrClosed) || errors.Is(err, ErrNotClaimed) }
			crowd.Go(func() {
				if n, err := w.Read(make([]byte, 1)); n != 0 || !over(err) {
					complain("read", err)
				}
			})
			if _, err := io.WriteString(w, crowdLine); err != nil && !over(err) {
				complain("write", err)
			}
			for _, state := range []State{w.State().In, w.State().Out} {
				if state != Free && state != Diverted {
					complain("state", errors.New(state.String()))
				}
			}
			_, _ = w.Descriptor(In), w.Descriptor(Out)
			if err := w.Err(); err != nil {
				complain("claim", err)
			}
		}
		visit := func(number int) {
			take := []func(...Option) (*Wire, error){Claim, Open}[number%2]
			own, err := take(askings[number%len(askings)].options...)
			switch {
			case err == nil:
				claims.Add(1)
				latest.Store(own)
				use(own)
			case !errors.Is(err, ErrClaimed):
				complain("claim", err)
			}
			if other := latest.Load(); other != nil {
				use(other)
				names := []string{"Release", "Close", "In.Close", "Out.Close"}
				if err := endings[names[number%len(names)]](other); err != nil {
					complain(names[number%len(names)], err)
				}
			}
			if own != nil {
				if err := own.Release(); err != nil {
					complain("Release", err)
				}
			}
		}
		for id := range 8 {
			crowd.Go(func() {
				for round := range 25 {
					visit(id*7 + round)
				}
			})
		}
		crowd.Wait()
		if claims.Load() == 0 || p.moved(In) || p.moved(Out) {
			t.errorf("%d claims, descriptors moved: %t, %t", claims.Load(), p.moved(In), p.moved(Out))
		}
	})
}

// Everything at once, which is above all a test for the race detector.
func TestCrowd(t *testing.T) {
	t.Parallel()
	s := newSession(t, "crowd", nil)
	s.start()
	wire, err := io.ReadAll(s.out)
	if err != nil {
		t.Fatal(err)
	}
	if strings.ReplaceAll(string(wire), crowdLine, "") != "" {
		t.Errorf("the wire carried something else: %q", wire)
	}
	s.end()
}
