package relay

import (
	"testing"
	"time"

	"github.com/wireguardrun/wireguardrun/internal/pipes/frame"
)

// tooEarly is a session whose server has printed before it has read anything of
// what the client has said.
func tooEarly(t *testing.T, said, early string) *session {
	t.Helper()
	needsUnread(t)
	limit := earlyLimit
	t.Cleanup(func() { earlyLimit = limit })
	earlyLimit = time.Hour
	s := newSession(t, true)
	s.write(s.client.out, said)
	s.awaitUnread(s.std.in)
	s.awaitUnread(s.pair.in)
	s.write(s.std.out, early)
	s.await("the print waits", func() bool {
		s.relay.mu.Lock()
		defer s.relay.mu.Unlock()
		return string(s.relay.stdout.early.text) == early
	})
	return s
}

// What is printed before anything was read is stray if the extra pair is what
// is read then.
func TestAnEarlyPrint(t *testing.T) {
	for name, test := range map[string]struct{ said, print, answer string }{
		"raw":  {"hello\n", "starting\n", "hello yourself\n"},
		"json": {`{"ask":1}` + "\n", `{"level":"info"}` + "\n", `{"answer":1}` + "\n"},
	} {
		t.Run(name, func(t *testing.T) {
			s := tooEarly(t, test.said, test.print)
			s.read(s.pair.in, test.said)
			s.awaitStray(test.print)
			s.write(s.pair.out, test.answer)
			s.read(s.client.in, test.answer)
			s.wantSide(Aware)
		})
		t.Run(name+", answered at once", func(t *testing.T) {
			s := tooEarly(t, test.said, test.print)
			s.write(s.pair.out, test.answer)
			s.read(s.client.in, test.answer)
			s.awaitStray(test.print)
			s.wantSide(Aware)
		})
		t.Run(name+", without an answer", func(t *testing.T) {
			s := tooEarly(t, test.said, test.print)
			s.read(s.pair.in, test.said)
			_ = s.client.out.Close()
			if got := s.finish(); got != test.print {
				t.Errorf("stray %q", got)
			}
		})
		// It is the first output of one that speaks on standard output if
		// that is what goes with what it reads, or if it never reads.
		t.Run(name+", of an unmodified server", func(t *testing.T) {
			s := tooEarly(t, test.said, test.print)
			s.read(s.std.in, test.said)
			s.write(s.std.out, test.answer)
			s.read(s.client.in, test.print+test.answer)
			s.wantSide(Unmodified)
		})
		t.Run(name+", of a server that reads nothing", func(t *testing.T) {
			needsUnread(t)
			s := newSession(t, true)
			s.write(s.client.out, test.said)
			s.awaitUnread(s.pair.in)
			s.write(s.std.out, test.print+test.answer)
			s.read(s.client.in, test.print+test.answer)
			s.wantSide(Unmodified)
		})
		t.Run(name+", of a server that has closed the extra pair", func(t *testing.T) {
			s := tooEarly(t, test.said, test.print)
			_ = s.pair.out.Close()
			s.read(s.client.in, test.print)
			s.wantSide(Unmodified)
		})
		t.Run(name+", and the end", func(t *testing.T) {
			s := tooEarly(t, test.said, test.print)
			if got := s.finish(); got != "" {
				t.Errorf("stray %q", got)
			}
			s.read(s.client.in, test.print)
		})
	}
}

// Where the client has said nothing the server is the one to begin.
func TestTheServerSpeaksFirst(t *testing.T) {
	s := newSession(t, true, func(o *Options) { o.Frame.Framing = frame.Raw })
	s.write(s.std.out, "220 ready\n")
	s.read(s.client.in, "220 ready\n")
	s.wantSide(Unmodified)
}
