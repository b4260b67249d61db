package relay

import (
	"sync"
	"sync/atomic"
	"time"

	"github.com/wireguardrun/wireguardrun/internal/pipes"
	"github.com/wireguardrun/wireguardrun/internal/pipes/frame"
)

// bufferSize is how much is read from the server at once, in bytes.
const bufferSize = 256 << 10

// output is one of the server's outputs and its scanner.
type output struct {
	r      *Relay
	side   Side   // the side that a frame here shows
	source string // FromStdout or FromExtra
	h      pipes.Handle
	conn   *pipes.Conn
	done   chan struct{}
	read   atomic.Int64 // bytes read from the pipe
	took   int64        // bytes that take has been given
	due    int64        // once read is as high, all that was written before mark has been read

	// order is held from a look at bytes to their end on the wire, by the
	// reader and by the timer of held frames.
	order   sync.Mutex
	scanner *frame.Scanner
	looking bool   // the scanner is at work
	batch   []byte // frames that the scanner has let through
	first   bool   // no byte has been seen yet
	unseen  bool   // the server speaks here, and the scanner looks no further; for run alone
	frames  int64  // that passed
	early   early
	timer   *time.Timer
	closed  bool
}

func (r *Relay) newOutput(h pipes.Handle, side Side, source string) *output {
	o := &output{r: r, side: side, source: source, h: h, conn: pipes.NewConn(h), done: make(chan struct{}), first: true}
	o.scanner = frame.NewScanner(r.o.Frame, r.conversation, frame.Output{
		Frame: o.frame,
		Stray: o.divert,
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
	buf := make([]byte, bufferSize)
	for {
		if o.unseen && o.splice() {
			continue
		}
		n, err := o.next(buf)
		if n > 0 {
			o.take(buf[:n])
		}
		if err != nil {
			o.end()
			return
		}
	}
}

// next reads. What first comes on the extra pair is counted before anybody can
// find the pipe empty: see behind.
func (o *output) next(buf []byte) (int, error) {
	if o.side == Aware && o.first && o.conn.Await() {
		o.r.mu.Lock()
		defer o.r.mu.Unlock()
	}
	n, err := o.conn.Read(buf)
	o.read.Add(int64(n))
	return n, err
}

// splice has the kernel move what an aware server has written. It returns false
// where that is not possible now, as at the end or for a slow client.
func (o *output) splice() bool {
	const limit = 1 << 20
	r := o.r
	if r.dead.Load() {
		return false
	}
	n := o.conn.Splice(r.pages, limit, &r.wire)
	o.read.Add(int64(n))
	r.outbound.Add(int64(n))
	r.moved.Add(1)
	return n > 0
}

// mark makes due what is in the pipe now.
func (o *output) mark() {
	n, _ := pipes.Unread(o.h)
	// One buffer more: it may have been read and not be counted yet.
	o.due = o.read.Load() + int64(n) + bufferSize
}

// owes reports whether something of what is due may be in the pipe still. Where
// others write to it, it need not be empty ever again.
func (o *output) owes() bool {
	if isClosed(o.done) {
		return false
	}
	n, _ := pipes.Unread(o.h)
	return n > 0 && o.read.Load() < o.due
}

// take deals with bytes of the server.
func (o *output) take(p []byte) {
	o.order.Lock()
	defer o.order.Unlock()
	r := o.r
	r.moved.Add(1)
	r.mu.Lock()
	if o.side == Unmodified {
		r.hearExtra()
	}
	o.took += int64(len(p))
	r.heard.Broadcast()
	if o.first && o.side == Aware && r.side != Unmodified && p[0] == '\n' {
		p = p[1:] // the announcement, even where it is no news
		r.decideLocked(Aware)
	}
	o.first = false
	switch {
	case r.side == Aware && o.side == Aware && o.scanner.Pending() == 0:
		o.unseen = r.pages != pipes.None
		p = o.scanner.PastLineEnd(p)
		r.mu.Unlock()
		r.write(p)
		return
	case r.side != Undecided && r.side != o.side:
		r.mu.Unlock()
		if r.o.Pace != nil {
			r.o.Pace(len(p))
		}
		r.mu.Lock()
		o.divert(p)
		r.mu.Unlock()
		return
	}
	o.scan(func(now time.Time) { o.scanner.Write(p, now) })
}

// hearExtra waits until what is in the extra pair has been taken, since it may
// be older than what has come on standard output: an announcement counts for
// all that is printed after it. It is called with the relay's lock held.
func (r *Relay) hearExtra() {
	for r.side == Undecided && r.out.behind() {
		r.heard.Wait()
	}
}

// behind reports whether something of what was written has not been taken.
func (o *output) behind() bool {
	n, _ := pipes.Unread(o.h)
	return n > 0 || o.read.Load() > o.took
}

// scan has the scanner look, with the relay's lock held, and ends with finish.
func (o *output) scan(look func(now time.Time)) {
	now := time.Now()
	o.judge(now)
	o.looking = true
	look(now)
	o.looking = false
	o.judge(now)
	if side := o.r.side; side != Undecided && side != o.side {
		o.surrender() // it may have found that out itself
	}
	o.finish(now)
}

// surrender diverts what has not gone anywhere yet: this is not the server's
// side. A scanner that is looking does it afterwards.
func (o *output) surrender() {
	for _, p := range o.takeEarly() {
		o.divert(p.text)
	}
	if !o.looking {
		o.scanner.Surrender()
	}
}

// frame is called by the scanner, with the relay's lock held.
func (o *output) frame(p []byte, kind frame.FrameKind) {
	r := o.r
	switch {
	case r.side != Undecided:
	case o.side == Aware:
		r.decideLocked(Aware)
	case !r.answers(kind):
	case kind == frame.Response:
		r.decideByReading()
	default:
		frames := int64(1)
		if kind == frame.RawBytes {
			frames = 0
		}
		o.early.add(p, frames, false)
		o.judge(time.Now())
		return
	}
	if r.side != Undecided && r.side != o.side {
		o.divert(p)
		return
	}
	o.passEarly()
	if kind != frame.RawBytes {
		o.frames++
	}
	o.batch = append(o.batch, p...)
}

// decideByReading decides when standard output has something that an aware
// server may have logged there: by which of the inputs has been read to its end.
func (r *Relay) decideByReading() {
	switch {
	case !r.in.drained():
		r.decideLocked(Unmodified)
	case r.stdin.untouched():
		r.decideLocked(Aware)
	}
}

// divert takes what is no frame of the wire, with the relay's lock held. It
// stays behind what waits, which may be stray too.
func (o *output) divert(p []byte) {
	if o.early.waits() {
		o.early.add(p, 0, true)
		return
	}
	o.r.o.Stray(o.source, p)
}

// answers reports whether a frame of a kind shows that the server serves.
func (r *Relay) answers(kind frame.FrameKind) bool {
	framing, _ := r.conversation.Framing()
	return kind == frame.Response || kind == frame.RawBytes || framing == frame.JSON
}

// finish unlocks the relay and puts on the wire what the scanner has let
// through.
func (o *output) finish(now time.Time) {
	deadline := o.nextLook(o.scanner.Deadline(), now)
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
	o.scan(o.scanner.Tick)
}

func (o *output) end() {
	o.order.Lock()
	defer o.order.Unlock()
	r := o.r
	r.mu.Lock()
	if o.side == Unmodified {
		r.hearExtra()
	}
	o.early.over = true
	o.scan(func(now time.Time) {
		o.scanner.Close(now)
		if o.side == Aware { // nobody has the extra pair any more
			if r.stdout.early.waits() {
				r.decideEarly()
			}
			r.decideLocked(Unmodified)
		}
	})
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
