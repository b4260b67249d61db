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
	text   []byte
	frames int64
	since  time.Time
	over   bool // it waits no longer
}

// takeEarly returns what has waited, once.
func (o *output) takeEarly() (text []byte, frames int64) {
	text, frames = o.early.text, o.early.frames
	o.early.text, o.early.frames = nil, 0
	return text, frames
}

// judge decides for what waits, if it is time, and puts it on the wire unless
// it is stray. It is called with the relay's lock held.
func (o *output) judge(now time.Time) {
	r, e := o.r, &o.early
	if len(e.text) == 0 {
		return
	}
	if r.side == Undecided {
		if e.since.IsZero() {
			e.since = now
		}
		unread := r.inbound.Load() > 0 && !r.stdin.touched() && !r.in.touched()
		if unread && !e.over && len(e.text) <= earlyMax && now.Sub(e.since) < earlyLimit {
			return
		}
		r.decideEarly()
	}
	text, frames := o.takeEarly() // nothing, if it was stray
	o.frames += frames
	o.batch = append(o.batch, text...)
}

// decideEarly decides by what the server has read: if it has read nothing, it
// speaks on standard output without being asked.
func (r *Relay) decideEarly() {
	switch stdin, in := r.stdin.touched(), r.in.touched(); {
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
	if look := now.Add(earlyLook); len(o.early.text) > 0 && (next.IsZero() || look.Before(next)) {
		return look
	}
	return next
}
