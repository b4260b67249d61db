package relay

import (
	"io"
	"strings"
	"testing"
	"time"

	"github.com/wireguardrun/wireguardrun/internal/pipes"
	"github.com/wireguardrun/wireguardrun/internal/pipes/frame"
)

// An input that nobody reads any more is dropped, and nothing else.
func TestABrokenInput(t *testing.T) {
	for name, broken := range map[string]func(*session) *file{
		"standard input": func(s *session) *file { return s.std.in },
		"extra pair":     func(s *session) *file { return s.pair.in },
	} {
		t.Run(name, func(t *testing.T) {
			s := newSession(t, true)
			gone := broken(s)
			other := s.std.in
			if other == gone {
				other = s.pair.in
			}
			_ = gone.Close()
			for range 3 {
				s.write(s.client.out, request)
				s.read(other, request)
			}
			s.wantSide(Undecided)
		})
	}
}

// The server ends its input and still answers; the client ends its output and
// still gets the answer.
func TestHalfClose(t *testing.T) {
	s := newSession(t, false)
	s.write(s.client.out, request)
	s.read(s.std.in, request)
	_ = s.std.in.Close()
	s.write(s.client.out, strings.Repeat(notice, 10_000)) // goes nowhere, and holds nobody up
	_ = s.client.out.Close()
	s.write(s.std.out, response)
	s.read(s.client.in, response)
}

// Where the extra pair is full, a frame on standard output shows who serves.
func TestAFrameWinsWhereAnInputIsFull(t *testing.T) {
	s := newSession(t, true)
	s.write(s.client.out, request)
	s.write(s.std.out, notice)
	s.read(s.client.in, notice)
	s.wantSide(Undecided)
	go func() { // as long as it takes
		long := []byte(`{"jsonrpc":"2.0","method":"` + strings.Repeat("x", 1<<20) + `"}` + "\n")
		for s.relay.Side() == Undecided {
			if _, err := s.client.out.Write(long); err != nil {
				return
			}
		}
		_ = s.client.out.Close()
	}()
	s.await("the side is decided", func() bool { return s.relay.Side() != Undecided })
	s.wantSide(Unmodified)
	_ = s.std.in.Close() // lets go of what the client still writes
	s.readEnd(s.pair.in, anything)
}

// The loser's input ends with the client, even while it is full.
func TestAFullLifelineEnds(t *testing.T) {
	s := newSession(t, true)
	go func() {
		_, _ = s.client.out.Write([]byte(strings.Repeat(notice, 10_000)))
		_ = s.client.out.Close()
	}()
	s.read(s.pair.in, strings.Repeat(notice, 5_000)) // by now the other pipe is full
	s.write(s.pair.out, "\n")
	s.read(s.pair.in, strings.Repeat(notice, 5_000))
	s.readEnd(s.pair.in)
	s.readEnd(s.std.in, anything)
}

// What the loser has printed stays in order, and as it was.
func TestTheLosersOutputStaysInOrder(t *testing.T) {
	s := newSession(t, true)
	const begun, rest = "a banner\nnoise " + notice + `{"loading": `, "12}\r\n\ndone\n"
	s.write(s.std.out, begun)
	s.awaitRead(s.relay.stdout, len(begun))
	s.write(s.pair.out, "\n"+notice)
	s.read(s.client.in, notice)
	s.write(s.std.out, rest)
	if got := s.finish(); got != begun+rest {
		t.Errorf("stray %q, want %q", got, begun+rest)
	}
}

func TestStats(t *testing.T) {
	s := newSession(t, true)
	s.write(s.client.out, request+notice)
	s.read(s.std.in, request+notice)
	s.write(s.std.out, "one\ntw")
	s.write(s.std.out, "o\n"+notice+response)
	s.read(s.client.in, notice+response)
	s.write(s.pair.out, "late")
	s.finish()
	got := s.relay.Stats()
	want := Stats{
		Side: Unmodified, Framing: frame.JSONRPC,
		Inbound:  Traffic{2, int64(len(request + notice))},
		Outbound: Traffic{2, int64(len(notice + response))},
	}
	if got != want {
		t.Errorf("got %+v\nwant %+v", got, want)
	}
}

// What is in the pipe at the server's end arrives, whatever the limits are.
func TestDrainOwesWhatIsInThePipe(t *testing.T) {
	s := newSession(t, false)
	s.write(s.client.out, request)
	s.read(s.std.in, request)
	holder := strings.Repeat(notice, 1000)
	s.write(s.std.out, holder) // the pipe stays open: somebody else has it
	drained := make(chan struct{})
	go func() {
		defer close(drained)
		s.relay.Drain(time.Millisecond, time.Millisecond)
	}()
	s.read(s.client.in, holder)
	<-drained
}

// What an aware server writes passes as it is, fast or slow, in any portions.
func TestAnAwareServerPassesUnread(t *testing.T) {
	s := newSession(t, true)
	text := []byte("\n")
	for n := 0; len(text) < 4<<20; n++ {
		text = append(text, strings.Repeat(string(rune('a'+n%26)), n%5000)...)
	}
	go func() {
		for rest, n := text, 0; len(rest) > 0; n++ {
			size := min(len(rest), 1+n*n%70_000)
			if _, err := s.pair.out.Write(rest[:size]); err != nil {
				return
			}
			rest = rest[size:]
		}
	}()
	for rest := string(text[1:]); len(rest) > 0; {
		n := min(len(rest), 100_000)
		s.read(s.client.in, rest[:n])
		rest = rest[n:]
	}
	s.finish()
	if got := s.relay.Stats().Outbound.Bytes; got != int64(len(text)-1) {
		t.Errorf("%d bytes were counted, %d have passed", got, len(text)-1)
	}
}

func TestAClientThatIsGoneFromAnAwareServer(t *testing.T) {
	s := newSession(t, true)
	s.write(s.pair.out, "\n"+notice)
	s.read(s.client.in, notice)
	_ = s.client.in.Close()
	for range 10_000 {
		s.write(s.pair.out, notice) // read on, so that the server is not stopped
	}
	s.finish()
	if got := s.relay.Stats().Lost; got != int64(10_000*len(notice)) {
		t.Errorf("%d bytes are lost, %d were written", got, 10_000*len(notice))
	}
}

// brokenWire fails in writing once released is closed.
type brokenWire struct {
	io.Reader
	released chan struct{}
}

func (w brokenWire) Write([]byte) (int, error) {
	<-w.released
	return 0, io.ErrShortWrite
}

// A wire that fails is told once, though both outputs write to it.
func TestAWireThatFails(t *testing.T) {
	released := make(chan struct{})
	failures := make(chan error, 3)
	s := newSession(t, true, func(o *Options) {
		o.Wire = brokenWire{o.Wire, released}
		o.WireOut = pipes.None
		o.Failed = func(err error) { failures <- err }
	})
	s.write(s.client.out, request)
	s.write(s.std.out, notice)
	s.awaitFrames(1)
	s.write(s.pair.out, notice)
	s.awaitFrames(2) // both are about to be written
	close(released)
	s.finish()
	if n := len(failures); n != 1 {
		t.Errorf("told %d times", n)
	}
	if got := s.relay.Stats().Lost; got != int64(2*len(notice)) {
		t.Errorf("%d bytes are lost, want %d", got, 2*len(notice))
	}
}
