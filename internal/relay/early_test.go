package relay

import (
	"strings"
	"testing"
	"time"

	"github.com/wireguardrun/wireguardrun/internal/pipes/frame"
)

// tooEarly is a session whose server has printed before it has read anything of
// what the client has said.
func tooEarly(t *testing.T, said, early string, change ...func(*Options)) *session {
	t.Helper()
	needsUnread(t)
	longEarly(t)
	s := newSession(t, true, change...)
	s.write(s.client.out, said)
	s.awaitUnread(s.std.in)
	s.awaitUnread(s.pair.in)
	s.write(s.std.out, early)
	s.await("the print waits", func() bool {
		s.relay.mu.Lock()
		defer s.relay.mu.Unlock()
		return s.relay.stdout.early.size == len(early)
	})
	return s
}

// longEarly makes output wait until it is known what to do with it.
func longEarly(t *testing.T) {
	limit := earlyLimit
	t.Cleanup(func() { earlyLimit = limit })
	earlyLimit = time.Hour
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

// What has waited goes before what ends the waiting.
func TestAnEarlyPrintGoesFirst(t *testing.T) {
	const print = `{"level":"info"}` + "\n"
	s := tooEarly(t, request, print, func(o *Options) { o.Frame.Framing = frame.JSON })
	s.write(s.std.out, response)
	s.read(s.client.in, print+response)
	s.wantSide(Unmodified)
}

// Stray bytes stay in order, whatever the first of them is taken for at first.
func TestAnEarlyPrintAndNoise(t *testing.T) {
	const said, print = `{"ask":1}` + "\n", `{"level":"info"}` + "\nready\n" + `{"level":"info"}` + "\n"
	t.Run("stray", func(t *testing.T) {
		s := tooEarly(t, said, print)
		s.read(s.pair.in, said)
		s.awaitStray(print)
		s.wantSide(Aware)
	})
	t.Run("of an unmodified server", func(t *testing.T) {
		s := tooEarly(t, said, print)
		s.read(s.std.in, said)
		s.read(s.client.in, strings.ReplaceAll(print, "ready\n", ""))
		s.awaitStray("ready\n")
		s.wantSide(Unmodified)
		s.awaitFrames(2)
	})
}

// Nothing waits for what can't be seen, as on Windows.
func TestAPrintWhereReadingIsNotTold(t *testing.T) {
	longEarly(t)
	s := newSession(t, true, func(o *Options) { o.Frame.Framing = frame.Raw })
	for _, in := range []*input{s.relay.stdin, s.relay.in} {
		in.mu.Lock()
		in.closed = true // without a descriptor that could tell
		in.mu.Unlock()
	}
	s.write(s.client.out, "hello\n")
	s.await("the client is heard", func() bool { return s.relay.Inbound() > 0 })
	s.write(s.std.out, "hello yourself\n")
	s.read(s.client.in, "hello yourself\n")
	s.wantSide(Unmodified)
}
