package relay

import (
	"time"

	"github.com/wireguardrun/wireguardrun/internal/pipes/frame"
)

// Stats says what a relay has done so far.
type Stats struct {
	Side     Side
	Framing  frame.Framing // Auto while it is not known
	Inbound  Traffic       // from the client
	Outbound Traffic       // to the client, as far as it took it
	Lost     int64         // outbound bytes that came when nobody read the wire any more

	// ReadNothing: all that the server was given was unread when its input
	// ended, or it did. False where that can't be told.
	ReadNothing bool

	Repairs [frame.Repairs]int64 // by kind
	Glued   int64                // frames that passed with noise on their line
	Joined  int64                // messages over several lines that passed
	Copies  int64                // logged messages that were diverted
	TooLong int64                // messages over the limit that were diverted
	Half    int64                // messages cut off by the server's end that were diverted

	// Unanswered is how many requests of the client have had no answer; -1
	// where answers are not looked for, as those of an aware server.
	Unanswered int64
}

// Traffic is one direction. Frames are those that the relay has told from each
// other: what passes unread, as everything does in raw framing and all of an
// aware server once it is known to be one, counts in Bytes alone.
type Traffic struct{ Frames, Bytes int64 }

// Stats returns the counts so far; after Drain, those of the whole session.
func (r *Relay) Stats() Stats {
	r.mu.Lock()
	defer r.mu.Unlock()
	framing, _ := r.conversation.Framing()
	s := Stats{
		Side:        r.side,
		Framing:     framing,
		Inbound:     Traffic{r.conversation.Frames(), int64(r.inbound.Load())},
		Outbound:    Traffic{0, r.outbound.Load()},
		Lost:        r.lost.Load(),
		ReadNothing: r.readNothing.Load(),
	}
	s.Unanswered = -1
	if r.side != Aware && r.conversation.Tracking() && framing != frame.JSON {
		s.Unanswered = r.conversation.Unanswered()
	}
	s.add(r.stdout)
	if r.out != nil {
		s.add(r.out)
	}
	return s
}

func (s *Stats) add(o *output) {
	s.Outbound.Frames += o.frames
	c := o.scanner.Stats()
	for kind, n := range c.Repairs {
		s.Repairs[kind] += n
	}
	s.Glued += c.Glued
	s.Joined += c.Joined
	s.Copies += c.Copies
	s.TooLong += c.TooLong
	s.Half += c.Half
}

// haste is how long a server may need to read at all: from a client that ends
// sooner, what was left unread means nothing.
const haste = time.Second

// lookAtReading finds out, once, whether the server reads, while the inputs are
// still open to be asked.
func (r *Relay) lookAtReading(clientEnds bool) {
	r.looked.Do(func() {
		for _, in := range []*input{r.stdin, r.in} {
			if in == nil {
				continue
			}
			read, since, known := in.anyRead()
			if read || !known || clientEnds && time.Since(since) < haste {
				return
			}
		}
		r.readNothing.Store(true)
	})
}
