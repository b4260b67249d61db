package relay

import (
	"bytes"
	"io"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/wireguardrun/wireguardrun/internal/pipes"
	"github.com/wireguardrun/wireguardrun/internal/pipes/frame"
)

const (
	request  = `{"jsonrpc":"2.0","id":1,"method":"ping"}` + "\n"
	response = `{"jsonrpc":"2.0","id":1,"result":{}}` + "\n"
	notice   = `{"jsonrpc":"2.0","method":"note"}` + "\n"
)

// session is a relay between a client and a server, both played by the test.
type session struct {
	t     *testing.T
	relay *Relay

	client    end // what the client writes to and reads from
	std, pair end // what the server reads from and writes to

	mu    sync.Mutex
	stray bytes.Buffer
}

// end is two directions of pipes.
type end struct{ in, out *file }

// file is one end of a pipe, owned by the test.
type file struct {
	*pipes.Conn
	h    pipes.Handle
	once sync.Once
}

func (f *file) Close() error {
	f.once.Do(func() { f.Retire(func() { _ = pipes.Close(f.h) }) })
	return nil
}

func newSession(t *testing.T, extra bool, change ...func(*Options)) *session {
	t.Helper()
	s := &session{t: t}
	pipe := func() (r, w pipes.Handle) {
		r, w, err := pipes.Pipe()
		if err != nil {
			t.Fatal(err)
		}
		return r, w
	}
	keep := func(h pipes.Handle) *file {
		f := &file{Conn: pipes.NewConn(h), h: h}
		t.Cleanup(func() { _ = f.Close() })
		return f
	}
	wireIn, toWire := pipe()
	fromWire, wireOut := pipe()
	s.client = end{in: keep(fromWire), out: keep(toWire)}
	o := Options{
		Wire: struct {
			io.Reader
			io.Writer
		}{keep(wireIn), keep(wireOut)},
		WireOut: wireOut,
		In:      pipes.None, Out: pipes.None,
		Frame: frame.Options{Repair: true, Glued: true},
		Stray: func(_ string, p []byte) {
			s.mu.Lock()
			defer s.mu.Unlock()
			s.stray.Write(p)
		},
		Note:   func(frame.Note) {},
		Failed: func(err error) { t.Errorf("the wire fails: %v", err) },
	}
	connect := func(in, out *pipes.Handle) end {
		r, w := pipe()
		*in = w
		theirs := keep(r)
		r, w = pipe()
		*out = r
		return end{in: theirs, out: keep(w)}
	}
	s.std = connect(&o.Stdin, &o.Stdout)
	if extra {
		s.pair = connect(&o.In, &o.Out)
	}
	for _, f := range change {
		f(&o)
	}
	s.relay = Start(o)
	// A hang ends here instead of at the runner's limit, with all closed.
	guard := time.AfterFunc(time.Minute, func() { _ = s.client.in.Close(); _ = s.std.in.Close() })
	t.Cleanup(func() { guard.Stop() })
	return s
}

func (s *session) write(f *file, text string) {
	s.t.Helper()
	if _, err := f.Write([]byte(text)); err != nil {
		s.t.Fatalf("write %q: %v", text, err)
	}
}

func (s *session) read(f *file, want string) {
	s.t.Helper()
	got := make([]byte, len(want))
	n, err := io.ReadFull(f, got)
	if string(got[:n]) != want {
		s.t.Fatalf("read %q, %v, want %q", got[:n], err, want)
	}
}

// anything may come before an end.
const anything = true

func (s *session) readEnd(f *file, before ...bool) {
	s.t.Helper()
	if rest, err := io.ReadAll(f); err != nil || len(rest) > 0 && before == nil {
		s.t.Fatalf("read %.100q, %v, want the end", rest, err)
	}
}

// await waits until something is so.
func (s *session) await(what string, so func() bool) {
	s.t.Helper()
	for limit := deadline(s.t); !so(); time.Sleep(time.Millisecond) {
		if time.Now().After(limit) {
			s.t.Fatalf("it has not come to this: %s", what)
		}
	}
}

func (s *session) awaitUnread(f *file) {
	s.t.Helper()
	s.await("something is in the pipe", func() bool { n, _ := pipes.Unread(f.h); return n > 0 })
}

func (s *session) awaitRead(o *output, n int) {
	s.t.Helper()
	s.await("the relay has read all", func() bool { return o.read.Load() >= int64(n) })
}

func (s *session) awaitFrames(n int64) {
	s.t.Helper()
	s.await("the scanners have seen all frames", func() bool { return s.relay.Stats().Outbound.Frames >= n })
}

func (s *session) awaitStray(want string) {
	s.t.Helper()
	s.await("it is stray", func() bool {
		s.mu.Lock()
		defer s.mu.Unlock()
		return s.stray.String() == want
	})
}

// deadline is when to give up.
func deadline(t *testing.T) time.Time {
	if d, ok := t.Deadline(); ok {
		return d.Add(-time.Second)
	}
	return time.Now().Add(time.Minute)
}

// finish ends the server and returns what was stray.
func (s *session) finish() string {
	s.t.Helper()
	for _, e := range []end{s.std, s.pair} {
		if e.out != nil {
			_ = e.out.Close()
		}
	}
	s.relay.Drain(time.Second, time.Minute)
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.stray.String()
}

func (s *session) wantSide(want Side) {
	s.t.Helper()
	if got := s.relay.Side(); got != want {
		s.t.Errorf("the side is %d, want %d", got, want)
	}
}

func TestStdio(t *testing.T) {
	s := newSession(t, false)
	s.write(s.client.out, request)
	s.read(s.std.in, request)
	s.write(s.std.out, "banner\n"+response)
	s.read(s.client.in, response)
	_ = s.client.out.Close()
	s.readEnd(s.std.in)
	if got := s.finish(); got != "banner\n" {
		t.Errorf("stray %q", got)
	}
}

func TestAResponseOnStdoutDecidesUnmodified(t *testing.T) {
	s := newSession(t, true)
	s.write(s.client.out, request)
	s.read(s.std.in, request)
	s.write(s.std.out, notice)
	s.read(s.client.in, notice)
	s.wantSide(Undecided)
	s.write(s.std.out, response)
	s.read(s.client.in, response)
	s.wantSide(Unmodified)
	s.write(s.pair.out, notice) // now stray
	if got := s.finish(); got != notice {
		t.Errorf("stray %q", got)
	}
}

func TestTheAnnouncementDecidesAware(t *testing.T) {
	s := newSession(t, true)
	s.write(s.pair.out, "\n")
	s.write(s.client.out, request)
	s.read(s.pair.in, request)
	s.write(s.pair.out, "anything at all")
	s.read(s.client.in, "anything at all")
	s.wantSide(Aware)
	s.write(s.std.out, response)
	if got := s.finish(); got != response {
		t.Errorf("stray %q", got)
	}
}

// An announcement counts for what is printed after it, although the two come by
// different pipes.
func TestTheAnnouncementComesFirst(t *testing.T) {
	s := newSession(t, true)
	s.write(s.client.out, request)
	s.read(s.pair.in, request)
	slow := &s.relay.out.order // whoever reads the extra pair has not got on yet
	slow.Lock()
	s.write(s.pair.out, "\n")
	s.awaitRead(s.relay.out, 1)
	s.write(s.std.out, notice)
	s.awaitRead(s.relay.stdout, len(notice))
	slow.Unlock()
	s.write(s.pair.out, response)
	s.read(s.client.in, response)
	if got := s.finish(); got != notice {
		t.Errorf("stray %q", got)
	}
}

// What is in the pipe and has not been read counts too.
func TestTheAnnouncementIsReadFirst(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("a read that waits takes what comes before anybody can know of it here")
	}
	for range 100 {
		s := newSession(t, true)
		s.relay.mu.Lock()
		s.write(s.pair.out, "\n")
		s.write(s.std.out, notice)
		s.awaitRead(s.relay.stdout, len(notice))
		s.relay.mu.Unlock()
		s.write(s.pair.out, response)
		s.read(s.client.in, response)
		if got := s.finish(); got != notice {
			t.Fatalf("stray %q", got)
		}
	}
}

func TestAFrameOnTheExtraPairDecidesAware(t *testing.T) {
	s := newSession(t, true)
	s.write(s.client.out, request)
	s.read(s.pair.in, request)
	s.write(s.pair.out, response)
	s.read(s.client.in, response)
	s.wantSide(Aware)
}

// needsUnread skips where a pipe does not tell what was not read.
func needsUnread(t *testing.T) {
	t.Helper()
	r, w, err := pipes.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = pipes.Close(r); _ = pipes.Close(w) }()
	switch _, known := pipes.Unread(w); {
	case known:
	case runtime.GOOS == "linux":
		t.Fatal("the writing end of a pipe does not tell what was not read")
	default:
		t.Skip("the writing end of a pipe does not tell here what was not read")
	}
}

// withLoggedReply is a session whose server has read the extra pair and has logged
// a reply on its standard output.
func withLoggedReply(t *testing.T) *session {
	t.Helper()
	needsUnread(t)
	s := newSession(t, true)
	s.write(s.client.out, request)
	s.read(s.pair.in, request)
	s.awaitUnread(s.std.in)
	s.write(s.std.out, response)
	return s
}

// Such a server is aware.
func TestALogOfAReplyIsStray(t *testing.T) {
	s := withLoggedReply(t)
	s.write(s.pair.out, response+notice)
	s.read(s.client.in, response+notice)
	s.wantSide(Aware)
	if got := s.finish(); got != response {
		t.Errorf("stray %q", got)
	}
}

// A server that has read both says nothing by a reply on its standard output.
func TestAReplyOfAReaderOfBothDecidesNothing(t *testing.T) {
	needsUnread(t)
	s := newSession(t, true)
	s.write(s.client.out, request)
	s.read(s.pair.in, request)
	s.read(s.std.in, request)
	s.write(s.std.out, response)
	s.read(s.client.in, response)
	s.wantSide(Undecided)
}

func TestTheEndOfTheExtraPairDecidesUnmodified(t *testing.T) {
	s := newSession(t, true)
	_ = s.pair.out.Close()
	s.write(s.std.out, notice)
	s.read(s.client.in, notice)
	s.finish()
	s.wantSide(Unmodified)
}

// The end of the extra pair decides only once all is read that came before it.
func TestALastFrameWithoutLineEndOnTheExtraPair(t *testing.T) {
	s := newSession(t, true)
	s.write(s.client.out, request)
	s.read(s.pair.in, request)
	s.write(s.pair.out, strings.TrimSuffix(response, "\n"))
	_ = s.pair.out.Close()
	s.read(s.client.in, response)
	s.wantSide(Aware)
}

// The announcement is never passed on, though it is no news.
func TestALateAnnouncement(t *testing.T) {
	s := withLoggedReply(t)
	s.awaitStray(response)
	s.wantSide(Aware)
	s.write(s.pair.out, "\n"+notice)
	s.read(s.client.in, notice)
}

// The line end of a frame that has passed without it is no message of its own.
func TestALateLineEndOnTheExtraPair(t *testing.T) {
	s := newSession(t, true)
	s.write(s.client.out, request)
	s.read(s.pair.in, request)
	s.write(s.pair.out, strings.TrimSuffix(response, "\n"))
	s.read(s.client.in, response)
	s.write(s.pair.out, "\n"+notice)
	s.read(s.client.in, notice)
	s.write(s.pair.out, "anything at all")
	s.read(s.client.in, "anything at all")
}

// The loser's input stays open, without data, until the client's end.
func TestTheOtherInputIsALifeline(t *testing.T) {
	s := newSession(t, true)
	s.write(s.client.out, request)
	s.read(s.pair.in, request)
	s.write(s.pair.out, "\n"+response)
	s.read(s.client.in, response)
	s.write(s.client.out, request)
	s.read(s.pair.in, request)
	_ = s.client.out.Close()
	s.readEnd(s.pair.in)
	// What came before the decision may be there, and nothing after it.
	if rest, err := io.ReadAll(s.std.in); err != nil || string(rest) != request && len(rest) > 0 {
		t.Errorf("the other input has %q, %v", rest, err)
	}
}

// A server that reads one input only must not be held back by the other.
func TestAnInputThatIsNotRead(t *testing.T) {
	s := newSession(t, true)
	line := `{"jsonrpc":"2.0","method":"` + strings.Repeat("x", 1<<20) + `"}` + "\n"
	const lines = 3 * inputMax >> 20
	go func() {
		for range lines {
			if _, err := s.client.out.Write([]byte(line)); err != nil {
				return
			}
		}
	}()
	for range lines {
		s.read(s.pair.in, line)
	}
	s.wantSide(Aware)
}

// The client's slowness reaches the server and nobody else.
func TestASlowClient(t *testing.T) {
	s := newSession(t, false)
	s.write(s.client.out, request)
	s.read(s.std.in, request)
	const frames = 20000 // far more than all pipes hold
	written := make(chan struct{})
	go func() {
		defer close(written)
		for range frames {
			if _, err := s.std.out.Write([]byte(notice)); err != nil {
				return
			}
		}
	}()
	s.write(s.client.out, request) // passes all the same
	s.read(s.std.in, request)
	s.read(s.client.in, strings.Repeat(notice, frames))
	<-written
	if got := s.finish(); got != "" {
		t.Errorf("stray %q", got)
	}
}

// What was written before the end arrives, however late the client reads.
func TestDrain(t *testing.T) {
	s := newSession(t, false)
	s.write(s.client.out, request)
	s.read(s.std.in, request)
	text := strings.Repeat(notice, 1000)
	s.write(s.std.out, text)
	_ = s.std.out.Close()
	drained := make(chan struct{})
	go func() {
		defer close(drained)
		s.relay.Drain(time.Millisecond, time.Millisecond)
	}()
	s.read(s.client.in, text)
	<-drained
}

// A process that keeps the pipe after the server's end does not hold us.
func TestDrainWithAHolder(t *testing.T) {
	s := newSession(t, false)
	s.write(s.client.out, request)
	s.write(s.std.out, response)
	s.read(s.client.in, response)
	s.relay.Drain(50*time.Millisecond, time.Second)
}

func TestAClientThatIsGone(t *testing.T) {
	s := newSession(t, false)
	s.write(s.client.out, request)
	s.read(s.std.in, request)
	_ = s.client.in.Close()
	for range 100 {
		s.write(s.std.out, notice) // read on, so that the server is not stopped
	}
	if got := s.finish(); got != "" {
		t.Errorf("stray %q", got)
	}
}
