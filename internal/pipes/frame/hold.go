package frame

import "time"

// The hold rule.
//
// A server may log the messages it sends or gets, so a glued or joined message
// may be a copy. It passes only if it answers a request that is open, or starts
// something of the server's own and is no copy of a recent message of either
// side, in whatever spelling; and it waits for the next clean frame, 250 ms at
// most. If that frame answers the same id, or is the same message, the held one
// is stray; if not, the held one goes first. Once three holds of a kind have
// ended without a copy, holds of that kind last 20 ms, until a copy is seen.
// Where ids can't be tracked, every glued or joined message passes after its
// hold.
//
// Stray bytes behind a held message wait with it, so that their order stays;
// more than 1 MiB of them end the hold.

type holdKind uint8

const (
	holdGlued holdKind = iota
	holdJoined
	holdKinds
)

// item is a held frame, or stray bytes behind one. The first in the queue is
// always a frame.
type item struct {
	held  bool
	blank bool // a blank line
	text  []byte
	end   int // of the value in text; white space and line end follow
	flags faults
	kind  holdKind
	due   time.Time
	m     machine // messages only
}

// hold takes the glued or joined message in data[start:end] and decides whether
// it waits or is stray.
func (s *Scanner) hold(start, end int, kind holdKind, m *machine) {
	s.stray(start)
	p := s.data[start:end]
	s.tail = tailStray
	ok, again := s.wanted(m, &saying{p: p})
	if again {
		s.stats.Copies++
		s.idleHolds[kind] = 0
	}
	if !s.opts.Glued || !ok || m.flags != 0 && !s.opts.Repair {
		s.stray(end)
		return
	}
	wait := holdLong
	if s.idleHolds[kind] >= holdsIdle {
		wait = holdShort
	}
	it := item{held: true, text: append(s.buffer(), p...), end: len(p), flags: m.flags,
		kind: kind, due: s.now.Add(wait), m: *m}
	it.m.more = append([]message(nil), m.more...)
	s.push(it)
	s.queued += len(p)
	s.given = end
	s.tail = tailHeld
	for len(s.queue) > 1 && (s.queued > s.opts.MaxFrame || len(s.queue) > holdItems) {
		s.releaseFirst(nil, nil)
	}
}

// wanted reports whether a glued or joined message may pass, and if not whether
// it is a copy of one that has.
func (s *Scanner) wanted(m *machine, p *saying) (ok, again bool) {
	if !s.conv.Tracking() {
		return true, false
	}
	if s.conv.inbound.has(p) {
		return false, true
	}
	own, answers := false, false
	m.each(func(msg *message) bool {
		if id, is := msg.answers(); is {
			answers = true
			ok = s.conv.isOpen(id)
		} else if msg.own() {
			own = true
		}
		return !ok
	})
	if ok {
		return true, false
	}
	if own && !s.conv.outbound.has(p) {
		return true, false
	}
	return false, own || answers
}

// enqueueStray keeps stray bytes behind a held frame.
func (s *Scanner) enqueueStray(p []byte, blank bool) {
	last := &s.queue[len(s.queue)-1]
	if last.held || last.blank || blank {
		s.push(item{blank: blank, text: s.buffer()})
		last = &s.queue[len(s.queue)-1]
	}
	last.text = append(last.text, p...)
	s.queued += len(p)
	for len(s.queue) > 0 && s.queued-s.queue[0].end > holdNoise {
		s.releaseFirst(nil, nil)
	}
}

// push adds to the end of the queue. Room for a few is kept: most holds are of
// one frame.
func (s *Scanner) push(it item) {
	if cap(s.waiting) == 0 {
		s.waiting = make([]item, 0, 8)
	}
	if len(s.queue) == 0 {
		s.queue = s.waiting
	}
	s.queue = append(s.queue, it)
}

// expire ends the holds that are over.
func (s *Scanner) expire(now time.Time) {
	for len(s.queue) > 0 && !now.Before(s.queue[0].due) {
		s.releaseFirst(nil, nil)
	}
}

// release ends all holds because of a clean frame, or without one (m is nil).
func (s *Scanner) release(m *machine, p []byte) {
	clean := &saying{p: p}
	for len(s.queue) > 0 {
		s.releaseFirst(m, clean)
	}
}

// releaseFirst ends the first hold, and lets go what waited behind it.
func (s *Scanner) releaseFirst(m *machine, p *saying) {
	if m != nil && s.queue[0].copyOf(m, p) {
		s.stats.Copies++
		s.idleHolds[s.queue[0].kind] = 0
		s.strayHeld(&s.queue[0])
	} else {
		s.idleHolds[s.queue[0].kind]++
		s.passHeld(&s.queue[0])
	}
	n := 0
	for n < len(s.queue) && (n == 0 || !s.queue[n].held) {
		it := &s.queue[n]
		s.queued -= len(it.text)
		switch {
		case n == 0:
		case it.blank:
			s.blankNow(it.text)
		default:
			s.strayNow(it.text)
		}
		if cap(it.text) <= 4<<10 && len(s.spare) < 8 {
			s.spare = append(s.spare, it.text[:0])
		}
		n++
	}
	clear(s.queue[:n])
	s.queue = s.queue[n:]
	if len(s.queue) == 0 {
		s.queue = s.waiting
	}
}

func (s *Scanner) buffer() []byte {
	if n := len(s.spare); n > 0 {
		b := s.spare[n-1]
		s.spare = s.spare[:n-1]
		return b
	}
	return nil
}

// passHeld gives a held frame to the wire, unless what passed in the meantime
// has made it a copy.
func (s *Scanner) passHeld(it *item) {
	p := it.text[:it.end]
	ok, again := s.wanted(&it.m, &saying{p: p})
	if again {
		s.stats.Copies++
		s.idleHolds[it.kind] = 0
	}
	if !ok || s.mark > 0 && !s.opts.Repair {
		s.strayHeld(it)
		return
	}
	if it.flags&faultBreak != 0 {
		s.stats.Joined++
	} else {
		s.stats.Glued++
	}
	out := append(s.render(nil, p, it.flags), '\n')
	s.changed(len(it.text), len(out))
	it.m.each(func(msg *message) bool {
		if id, ok := msg.answers(); ok {
			s.conv.remember(id, it.kind)
		}
		return true
	})
	s.frameNow(out, s.passed(&it.m, p, false))
	s.settled(it, tailPassed)
}

func (s *Scanner) strayHeld(it *item) {
	s.strayNow(it.text)
	s.settled(it, tailStray)
}

// settled tells the line that the value on it is no longer held.
func (s *Scanner) settled(it *item, t tailKind) {
	if s.at == inTail && s.tail == tailHeld && it == &s.queue[len(s.queue)-1] {
		s.tail = t
	}
}

// copyOf reports whether a held frame is a copy of a clean one.
func (it *item) copyOf(m *machine, p *saying) bool {
	same := false
	it.m.each(func(a *message) bool {
		id, ok := a.answers()
		if !ok {
			return true
		}
		m.each(func(b *message) bool {
			other, ok := b.answers()
			same = ok && id == other
			return !same
		})
		return !same
	})
	return same || p.is(&saying{p: it.text[:it.end]})
}

// remember notes that a held frame answered an id.
func (c *Conversation) remember(id uint64, k holdKind) {
	c.held[c.heldNext], c.heldKind[c.heldNext] = id, k
	c.heldNext = (c.heldNext + 1) % len(c.held)
}

// wasHeld returns the kind of the held frame that answered an id lately, or
// holdKinds.
func (c *Conversation) wasHeld(id uint64) holdKind {
	for i, h := range c.held {
		if h == id {
			c.held[i] = 0
			return c.heldKind[i]
		}
	}
	return holdKinds
}
