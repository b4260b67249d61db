package relay

import (
	"sync"
	"time"

	"github.com/wireguardrun/wireguardrun/internal/pipes"
	"github.com/wireguardrun/wireguardrun/internal/pipes/frame"
)

// output is one of the server's outputs and its scanner.
type output struct {
	r    *Relay
	side Side // which a frame on it speaks for
	h    pipes.Handle
	conn *pipes.Conn
	done chan struct{}

	// order is held from a look at bytes to their end on the wire, by the
	// reader and by the timer of held frames.
	order   sync.Mutex
	scanner *frame.Scanner
	batch   []byte // frames that the scanner has let through
	first   bool   // no byte has been seen yet
	timer   *time.Timer
	closed  bool
}

func (r *Relay) newOutput(h pipes.Handle, side Side) *output {
	o := &output{r: r, side: side, h: h, conn: pipes.NewConn(h), done: make(chan struct{}), first: true}
	o.scanner = frame.NewScanner(r.o.Frame, r.conversation, frame.Output{
		Frame: o.frame,
		Stray: r.o.Stray,
		Note:  r.note,
	})
	o.timer = time.AfterFunc(time.Hour, o.tick)
	o.timer.Stop()
	return o
}

// stop ends the reading; what has been read is still delivered.
func (o *output) stop() { o.conn.Retire(func() { _ = pipes.Close(o.h) }) }

func (o *output) run() {
	defer close(o.done)
	defer o.stop()
	buf := make([]byte, 256<<10)
	for {
		n, err := o.conn.Read(buf)
		if n > 0 {
			o.take(buf[:n])
		}
		if err != nil {
			o.end()
			return
		}
	}
}

// take deals with bytes of the server.
func (o *output) take(p []byte) {
	o.order.Lock()
	defer o.order.Unlock()
	r := o.r
	r.moved.Store(time.Now().UnixNano())
	r.mu.Lock()
	if o.first && o.side == Aware && r.side == Undecided && p[0] == '\n' {
		p = p[1:] // the announcement
		r.decideLocked(Aware)
	}
	o.first = false
	switch {
	case r.side == Aware && o.side == Aware && o.scanner.Pending() == 0:
		r.mu.Unlock()
		r.write(p)
		return
	case r.side != Undecided && r.side != o.side:
		r.o.Stray(p)
		r.mu.Unlock()
		return
	}
	now := time.Now()
	o.scanner.Write(p, now)
	o.finish(now)
}

// frame is called by the scanner, with the relay's lock held.
func (o *output) frame(p []byte, kind frame.FrameKind) {
	r := o.r
	switch {
	case r.side != Undecided:
	case o.side == Aware:
		r.decideLocked(Aware)
	case r.answers(kind) && !r.in.drained():
		// A server that has read the extra pair and logs on its standard
		// output is aware.
		r.decideLocked(Unmodified)
	}
	if r.side != Undecided && r.side != o.side {
		r.o.Stray(p)
		return
	}
	o.batch = append(o.batch, p...)
}

// answers reports whether a frame of a kind shows that the server serves.
func (r *Relay) answers(kind frame.FrameKind) bool {
	framing, _ := r.conversation.Framing()
	return kind == frame.Response || kind == frame.RawBytes || framing == frame.JSON
}

// finish unlocks the relay and puts on the wire what the scanner has let
// through.
func (o *output) finish(now time.Time) {
	deadline := o.scanner.Deadline()
	o.r.mu.Unlock()
	o.r.write(o.batch)
	if cap(o.batch) > 1<<20 {
		o.batch = nil // of a large frame
	}
	o.batch = o.batch[:0]
	if deadline.IsZero() {
		o.timer.Stop()
	} else {
		o.timer.Reset(max(deadline.Sub(now), 0))
	}
}

func (o *output) tick() {
	o.order.Lock()
	defer o.order.Unlock()
	if o.closed {
		return
	}
	o.r.mu.Lock()
	now := time.Now()
	o.scanner.Tick(now)
	o.finish(now)
}

func (o *output) end() {
	o.order.Lock()
	defer o.order.Unlock()
	o.r.mu.Lock()
	if o.side == Aware {
		o.r.decideLocked(Unmodified) // nobody has the extra pair any more
	}
	now := time.Now()
	o.scanner.Close(now)
	o.finish(now)
	o.closed = true
	o.timer.Stop()
}

// note passes a note on; what is said of the client is said once, not by each
// scanner. It is called with the relay's lock held.
func (r *Relay) note(n frame.Note) {
	if n.Kind == frame.NoteUnknownProtocol {
		if r.unknown {
			return
		}
		r.unknown = true
	}
	r.o.Note(n)
}
