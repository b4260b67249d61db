package relay

import "time"

// earlyLimit is how long output waits at most for the server to read.
var earlyLimit = 250 * time.Millisecond // tests need more

const (
	// earlyLook is how often the inputs are asked meanwhile: nothing tells of
	// a read.
	earlyLook = time.Millisecond
	// earlyMax is how much waits, in bytes.
	earlyMax = 1 << 20
)

// early is what comes on standard output before the server has read anything of
// what the client has said, in a framing (json, raw) where bytes don't show
// whether they answer anything. It may be an aware server's print, or the first
// words of a server that speaks there: what it reads next shows which.
type early struct {
	parts []part
	size  int // of all parts, in bytes
	since time.Time
	over  bool // it waits no longer
}

// part is messages, or what has come behind them and is stray.
type part struct {
	text   []byte
	frames int64
	stray  bool
}

func (e *early) waits() bool { return len(e.parts) > 0 }

func (e *early) add(p []byte, frames int64, stray bool) {
	if !e.waits() || e.parts[len(e.parts)-1].stray != stray {
		e.parts = append(e.parts, part{stray: stray})
	}
	last := &e.parts[len(e.parts)-1]
	last.text = append(last.text, p...)
	last.frames += frames
	e.size += len(p)
}

// takeEarly returns what has waited, once.
func (o *output) takeEarly() []part {
	parts := o.early.parts
	o.early.parts, o.early.size = nil, 0
	return parts
}

// passEarly puts what has waited on the wire.
func (o *output) passEarly() {
	for _, p := range o.takeEarly() {
		if p.stray {
			o.divert(p.text)
			continue
		}
		o.frames += p.frames
		o.batch = append(o.batch, p.text...)
	}
}

// judge decides for what waits, if it is time, and puts it on the wire unless
// it is stray. It is called with the relay's lock held.
func (o *output) judge(now time.Time) {
	r, e := o.r, &o.early
	if !e.waits() {
		return
	}
	if r.side == Undecided {
		if e.since.IsZero() {
			e.since = now
		}
		patient := !e.over && e.size <= earlyMax && now.Sub(e.since) < earlyLimit
		if patient && r.inbound.Load() > 0 && r.allUnread() {
			return
		}
		r.decideEarly()
	}
	o.passEarly() // nothing, if it was stray
}

// allUnread reports whether it is certain that the server has read nothing.
func (r *Relay) allUnread() bool {
	for _, in := range []*input{r.stdin, r.in} {
		if read, known := in.touched(); read || !known {
			return false
		}
	}
	return true
}

// decideEarly decides by what the server has read: if it has read nothing, it
// speaks on standard output without being asked.
func (r *Relay) decideEarly() {
	stdin, _ := r.stdin.touched()
	in, _ := r.in.touched()
	switch {
	case !in:
		r.decideLocked(Unmodified)
	case !stdin:
		r.decideLocked(Aware)
	default:
		r.decideByReading()
	}
}

// nextLook returns when to look again, where the scanner wants to at next.
func (o *output) nextLook(next, now time.Time) time.Time {
	if look := now.Add(earlyLook); o.early.waits() && (next.IsZero() || look.Before(next)) {
		return look
	}
	return next
}
