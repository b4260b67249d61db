package frame

import (
	"bytes"
	"sort"
	"time"
)

// Line framing.
//
// A frame is a JSON object whose top level says "jsonrpc":"2.0", or an array of
// such objects and nothing else, at least one. A whole line may also be an
// object without jsonrpc that holds result or error for an id that is open:
// lenient servers. In JSON framing any object or array is a frame, but only as
// a whole line. Only LF ends a line. What decides is the value itself, parsed
// to its end, never its first characters or the cut of a write.
//
// Clean: nothing but white space shares the line. It passes at its LF, or 50 ms
// after its closing bracket if no LF comes; an LF that comes later is eaten.
// Clean wins over everything: a line that is a frame passes even inside a
// longer text that is still open. Two frames on a line with nothing but white
// space between are both clean. Clean frames are never dropped, but for
// Options.StrictIDs.
//
// Glued: noise before or behind it on the line. Joined: it spans lines. Both
// are held, see hold.go. Neither is looked for inside another JSON value, but
// it is inside a text that began like one and came to nothing.
//
// Noise goes on at once when it can't begin a frame.

// lineCheck looks whether one line inside a longer candidate is a frame.
type lineCheck struct {
	from int // where the line begins
	step lineStep
	done bool // a frame, and only white space behind it so far
	due  time.Time
	m    machine
}

type lineStep uint8

const (
	lineOff lineStep = iota
	lineSpace
	lineValue
	lineRest
)

func (l *lineCheck) shift(n int) {
	l.from -= n
	l.m.shift(n)
}

func (s *Scanner) startCandidate(at int) {
	if s.known(at) || s.mode == JSON && s.noise {
		// It began inside a candidate that came to nothing, and will too.
		if s.hasClean {
			s.glueClean()
		}
		s.i, s.noise, s.at = at+1, true, inNoise
		return
	}
	s.cand.begin(s.data, at)
	s.first = s.at == atStart || s.at == inTail && s.tail == tailPassed
	s.at, s.give = inCandidate, at+1
	s.line.step, s.line.done = lineOff, false
}

// candidate goes on with a value that may be a frame.
func (s *Scanner) candidate(eof bool) bool {
	m := s.cand
	for {
		lim, lf := s.nextLF(m.pos), -1
		if lim < len(s.data) {
			lf = lim
		}
		limit := m.start + s.opts.MaxFrame
		over := lim > limit
		if over {
			lim = limit
		}
		switch m.run(s.data[:lim]) {
		case statDone:
			s.complete()
			return true
		case statBad:
			s.failAt(m.pos)
			return true
		}
		if s.hopeless() {
			s.giveUp(lim)
		}
		s.checkLine(lim)
		switch {
		case over:
			s.tooLong(lim)
			return true
		case lf >= 0 && s.line.done:
			s.failAt(s.line.from)
			return true
		case lf >= 0:
			if s.mode == JSON || m.run(s.data[:lf+1]) == statBad {
				s.failAt(lf)
				return true
			}
			s.line.from, s.line.step, s.line.done = lf+1, lineSpace, false
			continue
		case !eof:
			return false
		case s.line.done:
			s.failAt(s.line.from)
			return true
		}
		if !s.hopeless() {
			s.halved(len(s.data) - m.start)
		}
		s.failAt(len(s.data))
		return true
	}
}

// nextLF returns where the first LF at or behind at is, or the end of data.
// Candidates begin and end within a line, so what was searched once is
// remembered.
func (s *Scanner) nextLF(at int) int {
	if at < s.lfFrom || at > s.lf {
		s.lfFrom, s.lf = at, at
	}
	if k := bytes.IndexByte(s.data[s.lf:], '\n'); k >= 0 {
		s.lf += k
	} else {
		s.lf = len(s.data)
	}
	return s.lf
}

// checkLine looks at the bytes of the current line up to lim.
func (s *Scanner) checkLine(lim int) {
	l := &s.line
	if l.step == lineSpace {
		i := l.from
		for i < lim && (s.data[i] == ' ' || s.data[i] == '\t' || s.data[i] == '\r') {
			i++
		}
		if i >= lim {
			return
		}
		if s.data[i] != '{' && s.data[i] != '[' {
			l.step = lineOff
			return
		}
		l.m.begin(s.data, i)
		l.step = lineValue
	}
	if l.step == lineValue {
		switch l.m.run(s.data[:lim]) {
		case statMore:
			return
		case statBad:
			l.step = lineOff
			return
		}
		if !l.m.rpc() && !s.lenient(&l.m) || l.m.flags != 0 && !s.opts.Repair {
			l.step = lineOff
			return
		}
		l.step, l.done, l.due = lineRest, true, s.now.Add(cleanWait)
	}
	if l.step == lineRest {
		for l.m.pos < lim {
			if c := s.data[l.m.pos]; c != ' ' && c != '\t' && c != '\r' {
				l.step, l.done = lineOff, false
				return
			}
			l.m.pos++
		}
	}
}

// giveUp passes on what of a hopeless candidate can't be or hold the beginning
// of a frame. The bytes are kept for salvage all the same.
func (s *Scanner) giveUp(lim int) {
	if s.hasClean {
		s.glueClean()
	}
	for stop := s.stops(); s.give < lim && (s.data[s.give] == '\n' || !stop[s.data[s.give]]); {
		s.give++
	}
	// White space behind an LF may be the beginning of a line that is a frame.
	line := s.give
	for line > s.given && s.data[line-1] != '\n' && leadingSpace(s.data[line-1:line]) == 1 {
		line--
	}
	if s.data[line-1] == '\n' {
		s.stray(line)
	} else {
		s.stray(s.give)
	}
}

// hopeless reports whether the candidate can't become a frame any more.
func (s *Scanner) hopeless() bool { return s.mode != JSON && s.cand.hopeless() }

// tooLong diverts a candidate that is longer than a frame may be, up to the end
// of its line.
func (s *Scanner) tooLong(lim int) {
	if s.hasClean {
		s.glueClean()
	}
	s.stray(lim)
	s.i, s.noise = lim, true
	if s.hopeless() {
		s.at = inNoise
		return
	}
	s.long, s.at = int64(lim-s.cand.start), inSkip
}

// lenient reports whether m, which lacks jsonrpc, answers an open id: some
// servers leave it out.
func (s *Scanner) lenient(m *machine) bool {
	if m.array() || m.count == 0 || m.first.has&hasResult == 0 || m.first.has&hasMethod != 0 {
		return false
	}
	id, ok := m.first.answers()
	return ok && s.conv.Tracking() && s.conv.isOpen(id)
}

// complete judges a value that has come to its end.
func (s *Scanner) complete() {
	m := s.cand
	start, end := m.start, m.pos
	s.i = end
	joined := m.flags&faultBreak != 0
	frame := s.mode == JSON || m.rpc()
	lenient := !frame && !joined && s.first && !s.noise && s.lenient(m)
	if m.flags != 0 && !s.opts.Repair {
		frame, lenient = false, false
	}
	if frame && s.hasClean && s.clean.lenient {
		s.glueClean() // it is not a whole line
		s.noise = true
	}
	switch {
	case !frame && !lenient:
		if s.hasClean {
			s.glueClean()
		}
		s.stray(end)
		s.noise, s.at = true, inNoise
	case joined || s.noise:
		if s.hasClean {
			s.passClean(s.clean.end)
		}
		kind := holdGlued
		if joined {
			kind = holdJoined
		}
		s.at = inTail
		s.hold(start, end, kind, m)
	default:
		if s.hasClean {
			s.passClean(s.clean.end)
		}
		s.clean.m, s.cand = s.cand, s.clean.m
		v := &s.clean
		v.start, v.end, v.flags, v.lenient = start, end, v.m.flags, lenient
		v.due = s.now.Add(cleanWait)
		s.hasClean, s.at = true, afterClean
	}
}

// glueClean is called when noise follows a value that was alone on its line
// until now: it is glued.
func (s *Scanner) glueClean() {
	v := &s.clean
	s.hasClean = false
	if v.lenient || s.mode == JSON {
		s.stray(v.end)
		return
	}
	s.hold(v.start, v.end, holdGlued, v.m)
}

// passClean passes the clean value, and reports whether it went to the wire.
// What is passed goes on to end, where white space and an LF may have been
// found. White space of the line belongs to the frame, as it does without us,
// but for a CR before the value: a bar that returns to its column.
func (s *Scanner) passClean(end int) bool {
	v := &s.clean
	s.hasClean = false
	tail := s.data[v.end:end]
	lf := len(tail) > 0 && tail[len(tail)-1] == '\n'
	if lf {
		tail = tail[:len(tail)-1]
	}
	cr := 0
	for cr < len(tail) && tail[len(tail)-1-cr] == '\r' {
		cr++
	}
	if (cr > 0 || s.mark > 0) && !s.opts.Repair || s.opts.StrictIDs && s.unasked(v.m) {
		s.stray(end)
		return false
	}
	if len(s.queue) > 0 {
		s.release(v.m, s.data[v.start:v.end])
	}
	if k := bytes.LastIndexByte(s.data[s.given:v.start], '\r'); k >= 0 {
		s.stray(s.given + k + 1)
	}
	p := s.data[s.given:end]
	if v.flags != 0 || cr > 0 || !lf {
		if cr > 0 {
			s.repaired(RepairCR)
		}
		s.scratch = append(s.scratch[:0], s.data[s.given:v.start]...)
		s.scratch = s.render(s.scratch, s.data[v.start:v.end], v.flags)
		s.scratch = append(s.scratch, tail[:len(tail)-cr]...)
		s.scratch = append(s.scratch, '\n')
		s.changed(len(p), len(s.scratch))
		p = s.scratch
	}
	s.frameNow(p, s.passed(v.m, s.data[v.start:v.end], true))
	s.given = end
	if cap(s.scratch) > keepBuffer {
		s.scratch = nil
	}
	return true
}

// changed counts the bytes by which a frame grew or shrank.
func (s *Scanner) changed(from, to int) {
	if to > from {
		s.stats.Added += int64(to - from)
	} else {
		s.stats.Removed += int64(from - to)
	}
}

// unasked reports whether a frame holds responses, and none that an open
// request asked for.
func (s *Scanner) unasked(m *machine) bool {
	if !s.conv.Tracking() || s.mode == JSON {
		return false
	}
	answers, asked := false, false
	m.each(func(msg *message) bool {
		if id, ok := msg.answers(); ok {
			answers = true
			asked = s.conv.isOpen(id)
		}
		return !asked
	})
	return answers && !asked
}

// passed remembers a frame that goes to the wire, and tells its kind. Where ids
// aren't tracked, anything that looks like a response counts as one.
func (s *Scanner) passed(m *machine, p []byte, clean bool) FrameKind {
	kind, own := Other, false
	m.each(func(msg *message) bool {
		id, ok := msg.answers()
		switch {
		case !ok:
			own = own || msg.own()
		case !s.conv.Tracking():
			kind = Response
		case s.conv.isOpen(id):
			kind = Response
			s.conv.answered(id)
		case clean:
			if k := s.conv.wasHeld(id); k < holdKinds {
				s.idleHolds[k] = 0
				s.stats.Copies++
			}
		}
		return true
	})
	if own {
		s.conv.outbound.add(p)
	}
	return kind
}

// failAt ends a candidate that is no frame. At e is a byte that can't be there,
// the beginning of a clean line, or the end of the stream. What came before e is
// noise, but for frames inside it.
func (s *Scanner) failAt(e int) {
	js := s.cand.start
	if s.hasClean {
		s.glueClean()
	}
	end := e
	c := s.salvage(js, e)
	if c >= 0 {
		end = c
	} else if s.mode == Auto {
		end = s.lengthBefore(e)
	}
	s.noise = true
	if k := bytes.LastIndexByte(s.data[js:end], '\n'); k >= 0 {
		ls := js + k + 1
		s.stray(ls)
		s.noise = ls+leadingSpace(s.data[ls:end]) < end
	}
	if s.noise {
		s.stray(end)
	}
	s.i = end
	switch {
	case c >= 0:
		s.at = atStart
		s.startCandidate(c)
	case s.noise:
		s.at = inNoise
	default:
		s.at = atStart
	}
}

// lengthBefore returns where a Content-Length begins that the CR or LF at e
// ends, since that is where a string with one in it comes to nothing, or e.
func (s *Scanner) lengthBefore(e int) int {
	const longest = 64 // with all its digits
	for i := max(s.given, e-longest); i < e; i++ {
		if fold(s.data[i:e], contentLength) > 0 {
			return i
		}
	}
	return e
}

// salvage returns where in data[js:e], the beginning of a value that came to
// nothing, the next candidate begins, or -1. That is a bracket inside a string,
// or a message that is complete. A container that was still open at e comes to
// nothing there, too, and is remembered, so that no byte is tried again and
// again. Other complete values are no frames, and what is inside them is
// nested.
func (s *Scanner) salvage(js, e int) int {
	s.spent += int64(e - js)
	if s.mode == JSON || s.spent > 1<<20+64*s.stats.In {
		return -1
	}
	// Of the two kept the one is replaced that reaches less far: candidates
	// inside strings run out of step with those outside, and both kinds of
	// step have containers to remember.
	keep := &s.open[0]
	if last(s.open[1]) < last(s.open[0]) {
		keep = &s.open[1]
	}
	open := (*keep)[:0]
	for i := js; i < e; {
		switch s.data[i] {
		case '"':
			i = skipString(s.data[:e], i)
			continue
		case '{', '[':
			if len(open) == maxNest {
				*keep = open[:0]
				return -1
			}
			open = append(open, s.base+int64(i))
		case '}', ']':
			if len(open) > 0 {
				open = open[:len(open)-1]
			}
		}
		i++
	}
	*keep = open
	k := 1
	for i := js + 1; i < e; {
		switch s.data[i] {
		case '"':
			next := skipString(s.data[:e], i)
			if c := bytes.IndexAny(s.data[i:next], "{["); c >= 0 {
				return i + c
			}
			i = next
			continue
		case '{', '[':
			if k < len(open) && open[k] == s.base+int64(i) {
				k++
				break
			}
			s.probe.begin(s.data, i)
			if s.probe.run(s.data[:e]) != statDone {
				break
			}
			if s.probe.rpc() {
				return i
			}
			i = s.probe.pos
			continue
		}
		i++
	}
	return -1
}

// maxNest is how many open containers are remembered; deeper ones hide nothing.
const maxNest = 1 << 16

// known reports whether a container at this place came to nothing already.
func (s *Scanner) known(at int) bool {
	a := s.base + int64(at)
	for i := range s.open {
		open := s.open[i]
		if a > last(open) {
			s.open[i] = open[:0]
			continue
		}
		if k := sort.Search(len(open), func(k int) bool { return open[k] >= a }); open[k] == a {
			return true
		}
	}
	return false
}

// last returns the last place in open, or -1.
func last(open []int64) int64 {
	if len(open) == 0 {
		return -1
	}
	return open[len(open)-1]
}

func skipString(b []byte, i int) int {
	for i++; i < len(b); i++ {
		switch b[i] {
		case '"':
			return i + 1
		case '\\':
			i++
		}
	}
	return len(b)
}
