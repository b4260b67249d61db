package guard

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"strings"
	"testing"

	"github.com/wireguardrun/wireguardrun/internal/handover"
	"github.com/wireguardrun/wireguardrun/internal/pipes"
)

// handedSession is a child with a wire that was handed down on descriptors of
// its own. In fds mode its standard input is the null device and its standard
// output the diversion; in auto mode they are a second pair of pipes.
type handedSession struct {
	*child
	in, out       *os.File // the client's ends of the wire
	stdin, stdout *os.File // our ends of the child's 0 and 1; stdin is nil in fds mode
	theirs        []*os.File
	stderr        bytes.Buffer // in auto mode
}

// handDown prepares a child as the wrapper does. change alters what the child
// is told.
func handDown(t *testing.T, role string, input any, mode handover.Mode, change func(*handover.Record)) *handedSession {
	t.Helper()
	s := &handedSession{child: newChild(t, role, input)}
	wireIn, in := newPipe(t)
	out, wireOut := newPipe(t)
	stdout, theirStdout := newPipe(t)
	s.in, s.out, s.stdout = in, out, stdout

	var theirStdin *os.File
	if mode == handover.Auto {
		theirStdin, s.stdin = newPipe(t)
	} else {
		null, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = null.Close() })
		theirStdin = null
	}
	s.theirs = []*os.File{wireIn, wireOut, theirStdin, theirStdout}
	s.cmd.Stdin, s.cmd.Stdout, s.cmd.Stderr = theirStdin, theirStdout, &s.stderr
	if mode == handover.Fds {
		s.cmd.Stderr = theirStdout
	}

	rec := handover.Record{Mode: mode, Stdin: identityOf(t, theirStdin), Stdout: identityOf(t, theirStdout)}
	rec.In = handover.End{Number: 3, ID: identityOf(t, wireIn)}
	rec.Out = handover.End{Number: 4, ID: identityOf(t, wireOut)}
	rec.In.Handle, rec.Out.Handle = passOn(s.child, wireIn, wireOut)
	if change != nil {
		change(&rec)
	}
	s.cmd.Env = append(s.cmd.Env, rec.Environ()...)
	return s
}

func identityOf(t *testing.T, f *os.File) pipes.Identity {
	t.Helper()
	id, err := pipes.Identify(handle(f.Fd()))
	if err != nil {
		t.Fatal(err)
	}
	return id
}

func (s *handedSession) start() {
	s.t.Helper()
	s.child.start()
	for _, f := range s.theirs {
		_ = f.Close()
	}
}

// end waits for the child and returns what it wrote to the wire and to its
// standard output.
func (s *handedSession) end() (wire, stdout string) {
	s.t.Helper()
	_ = s.in.Close()
	if s.stdin != nil {
		_ = s.stdin.Close()
	}
	var all [2]string
	for i, f := range []*os.File{s.out, s.stdout} {
		b, err := io.ReadAll(f)
		if err != nil {
			s.t.Error(err)
		}
		all[i] = string(b)
	}
	s.ended()
	if s.t.Failed() {
		s.t.Logf("standard error: %s", s.stderr.String())
	}
	return all[0], all[1]
}

// contract returns the variables of the contract that are set.
func contract() map[string]string {
	set := map[string]string{}
	for _, name := range handover.Variables {
		if value, ok := os.LookupEnv(name); ok {
			set[name] = value
		}
	}
	return set
}

func (t *childTest) contractIs(when string, want map[string]string) {
	if got := contract(); !maps.Equal(got, want) {
		t.errorf("%s the variables are %q, want %q", when, got, want)
	}
}

// unmoved checks that neither standard descriptor was touched.
func (t *childTest) unmoved(when string, p probes) {
	if p.moved(In) || p.moved(Out) {
		t.errorf("%s the standard descriptors are moved: %t, %t", when, p.moved(In), p.moved(Out))
	}
}

func isOpen(h handle) bool { return pipes.Compare(h, h) != pipes.Closed }

var takes = map[string]func(...Option) (*Wire, error){"Open": Open, "Claim": Claim}

func init() {
	addRole("handed down", func(t *childTest, _ []byte) {
		t.closed = 2
		told := contract()
		rec, _, err := handover.FromEnv()
		t.must(err)
		p := newProbes(t)
		defer p.close()

		w, err := Open()
		t.must(err)
		if (w.State() != Status{Diverted, Diverted}) || w.Err() != nil {
			t.errorf("state %v, errors %v", w.State(), w.Err())
		}
		if handle(w.Descriptor(In)) != rec.In.Handle || handle(w.Descriptor(Out)) != rec.Out.Handle {
			t.errorf("descriptors %d and %d", w.Descriptor(In), w.Descriptor(Out))
		}
		t.contractIs("during the claim", nil)
		t.unmoved("during the claim", p)
		echo(w)
		printStrays(t)
		for name, take := range takes {
			if second, err := take(); second != nil || !errors.Is(err, ErrClaimed) {
				t.errorf("a second %s gave %v, %v", name, second, err)
			}
		}
		interrupted := make(chan error)
		go func() { _, err := w.Read(make([]byte, 1)); interrupted <- err }()
		untilBlocked("pipes.readHandle")
		t.must(w.Release())
		if err := <-interrupted; !errors.Is(err, os.ErrClosed) {
			t.errorf("a read that Release interrupts gave %v", err)
		}
		if w.State() != (Status{}) {
			t.errorf("after Release the state is %v", w.State())
		}
		fmt.Println("released")
		t.contractIs("after Release", told)
		t.unmoved("after Release", p)

		w, err = Open()
		t.must(err)
		t.contractIs("during a later claim", nil)
		echo(w)
		t.must(w.Close())
		if isOpen(rec.In.Handle) || isOpen(rec.Out.Handle) {
			t.errorf("Close left descriptors open: %t, %t", isOpen(rec.In.Handle), isOpen(rec.Out.Handle))
		}
		for name, take := range takes {
			if second, err := take(); second != nil || !errors.Is(err, ErrHandover) {
				t.errorf("%s after Close gave %v, %v", name, second, err)
			}
		}
		t.must(errors.Join(w.Close(), w.Release()))
		t.contractIs("after Close", nil)
		t.unmoved("after Close", p)
	})
}

func TestHandedDown(t *testing.T) {
	t.Parallel()
	testHandedDown(t, handDown(t, "handed down", nil, handover.Fds, nil))
}

func testHandedDown(t *testing.T, s *handedSession) {
	t.Helper()
	s.start()
	if _, err := io.WriteString(s.in, "one\n"); err != nil {
		t.Fatal(err)
	}
	want := allStrays() + "released\n"
	printed := make([]byte, len(want))
	if _, err := io.ReadFull(s.stdout, printed); err != nil || string(printed) != want {
		t.Errorf("the diversion got %q, %v, want %q", printed, err, want)
	}
	if _, err := io.WriteString(s.in, "two\n"); err != nil {
		t.Error(err)
	}
	wire, more := s.end()
	if want := "echo one\necho two\n"; wire != want || more != "" {
		t.Errorf("the wire carried %q, want %q; the diversion got %q more", wire, want, more)
	}
}

func init() {
	addRole("announcing", func(t *childTest, _ []byte) {
		t.closed = 2
		told := contract()
		p := newProbes(t)
		defer p.close()
		w, err := Open()
		t.must(err)
		if (w.State() != Status{Diverted, Diverted}) || !p.moved(In) || !p.moved(Out) {
			t.errorf("state %v, descriptors moved: %t, %t", w.State(), p.moved(In), p.moved(Out))
		}
		t.contractIs("during the claim", nil)
		echo(w)
		fmt.Println("stray")
		t.must(w.Release())
		t.contractIs("after Release", told)
		t.unmoved("after Release", p)

		w, err = Open()
		t.must(err)
		echo(w)
		t.must(w.Close())
		t.unmoved("after Close", p)
		if second, err := Open(); second != nil || !errors.Is(err, ErrHandover) {
			t.errorf("Open after Close gave %v, %v", second, err)
		}
		// The other pair carries the wire too.
		w, err = Claim()
		t.must(err)
		echo(w)
		t.must(w.Release())
		fmt.Println("printed")
	})
}

// In auto mode one LF, and only one, tells the wrapper which pair is in use.
func TestHandedDownInAutoMode(t *testing.T) {
	t.Parallel()
	s := handDown(t, "announcing", nil, handover.Auto, nil)
	s.start()
	announcement := make([]byte, 1)
	if _, err := io.ReadFull(s.out, announcement); err != nil || announcement[0] != '\n' {
		t.Errorf("the announcement, before anything was sent, is %q, %v", announcement, err)
	}
	for f, text := range map[*os.File]string{s.in: "one\ntwo\n", s.stdin: "three\n"} {
		if _, err := io.WriteString(f, text); err != nil {
			t.Fatal(err)
		}
	}
	wire, stdout := s.end()
	if want := "echo one\necho two\n"; wire != want {
		t.Errorf("the wire carried %q, want %q", wire, want)
	}
	if want := "echo three\nprinted\n"; stdout != want {
		t.Errorf("standard output got %q, want %q", stdout, want)
	}
	if want := "stray\n"; s.stderr.String() != want {
		t.Errorf("standard error got %q, want %q", s.stderr.String(), want)
	}
}

// other is the identity of an object that the child does not have.
func other(t *testing.T) pipes.Identity {
	r, _ := newPipe(t)
	return identityOf(t, r)
}

type refusalInput struct{ Call, Says string }

func init() {
	addRole("handover refused", func(t *childTest, input []byte) {
		var in refusalInput
		t.must(json.Unmarshal(input, &in))
		told := contract()
		p := newProbes(t)
		defer p.close()
		for range 2 {
			w, err := takes[in.Call]()
			if w != nil || !errors.Is(err, ErrHandover) || !strings.Contains(errorText(err), in.Says) {
				t.errorf("%s gave %v, %v, want an error that says %q", in.Call, w, err, in.Says)
			}
			t.contractIs("after a refusal", told)
			t.unmoved("after a refusal", p)
		}
	})
}

// Where a handed-down wire can't be used and nothing else is the wire, nothing
// is taken, and the error says what is wrong.
func TestHandoverRefused(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name   string
		says   string
		calls  []string
		change func(*testing.T, *handover.Record)
	}{
		{"nothing is wrong", "call Open", []string{"Claim"}, nil},
		{"stale in", "wire in, descriptor 3", nil, func(t *testing.T, r *handover.Record) { r.In.ID = other(t) }},
		{"stale out", "wire out, descriptor 4", nil, func(t *testing.T, r *handover.Record) { r.Out.ID = other(t) }},
		{"stdin replaced", "stdin, descriptor 0", nil, func(t *testing.T, r *handover.Record) { r.Stdin = other(t) }},
		{"stdout replaced", "stdout, descriptor 1", nil, func(t *testing.T, r *handover.Record) { r.Stdout = other(t) }},
		{"not open", "wire out, descriptor 99", nil, func(_ *testing.T, r *handover.Record) {
			r.Out.Number, r.Out.Handle = 99, 99_999
		}},
	} {
		calls := test.calls
		if calls == nil {
			calls = []string{"Open", "Claim"}
		}
		for _, call := range calls {
			t.Run(test.name+"/"+call, func(t *testing.T) {
				change := func(r *handover.Record) {
					if test.change != nil {
						test.change(t, r)
					}
				}
				s := handDown(t, "handover refused", refusalInput{call, test.says}, handover.Fds, change)
				s.start()
				if wire, stdout := s.end(); wire+stdout != "" {
					t.Errorf("the wire carried %q, standard output %q", wire, stdout)
				}
			})
		}
	}
}

func TestHandoverUnreadable(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct{ record, says string }{
		"garbage":         {"3,4", `version "3,4" is not supported`},
		"another version": {"v2;mode=fds;in=3@a:1;out=4@a:2", `version "v2" is not supported`},
		"another mode":    {"v1;mode=new;in=3@a:1;out=4@a:2", `mode "new" is unknown`},
		"an end lacks":    {"v1;mode=fds;in=3@a:1", `out="" is not NUMBER@IDENTITY`},
	} {
		t.Run(name, func(t *testing.T) {
			s := newSession(t, "handover refused", refusalInput{"Open", test.says})
			s.cmd.Env = append(s.cmd.Env, handover.EnvRecord+"="+test.record)
			s.start()
			if wire := s.end(); wire != "" {
				t.Errorf("the wire carried %q", wire)
			}
		})
	}
}

func init() {
	addRole("handover passed over", func(t *childTest, _ []byte) {
		told := contract()
		p := newProbes(t)
		defer p.close()
		for _, take := range []func(...Option) (*Wire, error){Open, Claim} {
			w, err := take()
			t.must(err)
			if (w.State() != Status{Diverted, Diverted}) || !p.moved(In) || !p.moved(Out) {
				t.errorf("state %v, descriptors moved: %t, %t", w.State(), p.moved(In), p.moved(Out))
			}
			echo(w)
			t.must(w.Release())
			t.unmoved("after Release", p)
			t.contractIs("after Release", told)
		}
	})
}

func init() {
	addRole("inheritance fails", func(t *childTest, _ []byte) {
		told := contract()
		rec, _, err := handover.FromEnv()
		t.must(err)
		r := &registry{sys: realSystem()}
		inherited := map[handle]bool{rec.In.Handle: true, rec.Out.Handle: true}
		fails := none
		r.sys.inherit = func(h handle, on bool) error {
			if h == fails {
				return errInjected
			}
			inherited[h] = on
			return realSystem().inherit(h, on)
		}
		for s, end := range []handover.End{rec.In, rec.Out} {
			says := fmt.Sprintf("guard: %s: set inheritance: ", Stream(s))
			fails = end.Handle
			if w, err := r.open(newConfig(nil)); w != nil || !errors.Is(err, ErrHandover) || !strings.Contains(err.Error(), says) {
				t.errorf("Open gave %v, %v, want %q", w, err, says)
			}
			t.contractIs("after a refusal", told)
			if !inherited[rec.In.Handle] || !inherited[rec.Out.Handle] {
				t.errorf("after a refusal children inherit %v", inherited)
			}

			fails = none
			w, err := r.open(newConfig(nil))
			t.must(err)
			fails = end.Handle
			if err := w.Release(); !strings.Contains(errorText(err), says) || (w.State() != Status{}) {
				t.errorf("Release gave %v and left %v, want %q", err, w.State(), says)
			}
			if other := rec.In.Handle + rec.Out.Handle - end.Handle; !inherited[other] {
				t.errorf("after a Release that failed for %s children do not inherit the other end", Stream(s))
			}
			inherited[end.Handle] = true // for the next round
		}
	})
}

// What a refused Open has changed is given back, and Release goes on after an
// error.
func TestInheritanceFails(t *testing.T) {
	t.Parallel()
	s := handDown(t, "inheritance fails", nil, handover.Fds, nil)
	s.start()
	if wire, stdout := s.end(); wire+stdout != "" {
		t.Errorf("the wire carried %q, standard output %q", wire, stdout)
	}
}

// A record that is about another process, or about a pair that auto mode can
// do without: 0 and 1 are claimed, and the pair is left alone.
func TestHandoverPassedOver(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		mode   handover.Mode
		change func(*testing.T, *handover.Record)
	}{
		"started by the server": {handover.Fds, func(t *testing.T, r *handover.Record) { r.Stdin, r.Stdout = other(t), other(t) }},
		"stale in":              {handover.Auto, func(t *testing.T, r *handover.Record) { r.In.ID = other(t) }},
		"stale out":             {handover.Auto, func(t *testing.T, r *handover.Record) { r.Out.ID = other(t) }},
		"stdout replaced":       {handover.Auto, func(t *testing.T, r *handover.Record) { r.Stdout = other(t) }},
	} {
		t.Run(name, func(t *testing.T) {
			// Pipes on 0 and 1, as in auto mode, whatever the record says.
			s := handDown(t, "handover passed over", nil, handover.Auto, func(r *handover.Record) {
				r.Mode = test.mode
				test.change(t, r)
			})
			s.start()
			if _, err := io.WriteString(s.stdin, "one\ntwo\n"); err != nil {
				t.Fatal(err)
			}
			wire, stdout := s.end()
			if want := "echo one\necho two\n"; wire != "" || stdout != want {
				t.Errorf("the extra pair carried %q, standard output %q, want %q", wire, stdout, want)
			}
		})
	}
}

func init() {
	addRole("handed down, one by one", func(t *childTest, _ []byte) {
		t.closed = 2
		in, err := Open(Only(In))
		t.must(err)
		out, err := Open(Only(Out))
		t.must(err)
		if (in.State() != Status{In: Diverted}) || (out.State() != Status{Out: Diverted}) {
			t.errorf("states %v and %v", in.State(), out.State())
		}
		both := struct {
			io.Reader
			io.Writer
		}{in, out}
		echo(both)

		// One direction is given back while the other is in use: children
		// are told of a pair or of none.
		t.must(in.Release())
		t.contractIs("with one direction released", nil)
		in, err = Open(Only(In))
		t.must(err)
		both.Reader = in
		echo(both)

		t.must(in.Close())
		_, err = io.WriteString(out, "half closed\n")
		t.must(err)
		for _, opts := range [][]Option{nil, {Only(In)}} {
			if w, err := Open(opts...); w != nil || err == nil {
				t.errorf("Open of what was closed gave %v, %v", w, err)
			}
		}
		t.must(out.Release())
		t.contractIs("with one direction closed", nil)
		out, err = Open(Only(Out))
		t.must(err)
		_, err = io.WriteString(out, "still there\n")
		t.must(err)
		t.must(out.Close())
	})
}

func TestHandedDownOneByOne(t *testing.T) {
	t.Parallel()
	s := handDown(t, "handed down, one by one", nil, handover.Fds, nil)
	s.start()
	if _, err := io.WriteString(s.in, "one\ntwo\n"); err != nil {
		t.Fatal(err)
	}
	wire, _ := s.end()
	if want := "echo one\necho two\nhalf closed\nstill there\n"; wire != want {
		t.Errorf("the wire carried %q, want %q", wire, want)
	}
}

func init() {
	addRole("handed down twice", func(t *childTest, _ []byte) {
		told := contract()
		for name, end := range endings {
			first, err := Open()
			t.must(err)
			t.must(first.Release())
			second, err := Open()
			t.must(err)
			t.must(end(first))
			t.contractIs("after "+name+" of an earlier Wire", nil)
			echo(second)
			t.must(second.Release())
			t.contractIs("after Release", told)
		}
	})
}

// Close of a Wire that was released must not close the pair under a later one.
func TestHandedDownTwice(t *testing.T) {
	t.Parallel()
	s := handDown(t, "handed down twice", nil, handover.Fds, nil)
	s.start()
	if _, err := io.WriteString(s.in, strings.Repeat("x\n", len(endings))); err != nil {
		t.Fatal(err)
	}
	if wire, _ := s.end(); wire != strings.Repeat("echo x\n", len(endings)) {
		t.Errorf("the wire carried %q", wire)
	}
}
