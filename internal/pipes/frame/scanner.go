package frame

import (
	"bytes"
	"time"
)

// Scanner takes what the server prints on one descriptor and tells frames from
// stray bytes. See lines.go, headers.go, hold.go and repair.go for the rules.
type Scanner struct {
	opts  Options
	conv  *Conversation
	out   Output
	stats Stats
	noted [Repairs]bool

	mode  Framing // as of the last call
	buf   []byte  // bytes that are not decided yet
	data  []byte  // buf, or the chunk when buf is empty; only within a call
	given int     // data[:given] has gone somewhere
	i     int     // next byte the line rules look at

	at    place
	noise bool      // something that is no frame came before i on this line
	tail  tailKind  // at inTail: where the value before i went
	now   time.Time // of the bytes that are looked at

	clean    value // complete, alone on its line so far; valid while hasClean
	hasClean bool

	cand   *machine // at inCandidate and inBody
	first  bool     // the candidate comes first on its line, or behind a frame that has passed
	give   int      // of a hopeless candidate: looked for brackets up to here
	lfFrom int      // no LF in data[lfFrom:lf]
	lf     int
	line   lineCheck
	probe  machine    // scratch of salvage
	open   [2][]int64 // containers that came to nothing, by place in the stream
	base   int64      // place of data[0] in the stream
	spent  int64      // bytes of candidates that came to nothing
	long   int64      // bytes of the line at inSkip

	head      header
	headAt    int  // where its block begins
	headFirst bool // it stands at a place where a block may begin
	begun     bool // its body's bracket was found
	whole     bool // and the bracket that closes it

	scratch []byte

	started bool // something was emitted
	mark    int  // length of the byte-order mark that waits
	blanks  []byte
	framed  bool // the last thing emitted was a frame, or nothing was yet

	queue     []item // held frames and the stray bytes behind them
	waiting   []item // where queue begins, so that its room is used again
	spare     [][]byte
	queued    int // stray bytes in queue
	idleHolds [holdKinds]int
}

type place uint8

const (
	atStart     place = iota // of a line, or between header frames
	inNoise                  // of a line
	afterClean               // behind a clean value whose line may be over
	inTail                   // behind any other value
	inCandidate              // in a value that may be a frame
	inHeader
	inBody
	inSkip // the rest of a line that is too long
)

type tailKind uint8

const (
	tailStray tailKind = iota
	tailHeld
	tailPassed
)

// value is a complete JSON text in data.
type value struct {
	start, end int
	flags      faults
	lenient    bool // not JSON-RPC, but answers an open id
	due        time.Time
	m          *machine // messages only
}

// keepBuffer is the largest buffer that is kept when it is empty.
const keepBuffer = 2 << 20

// NewScanner returns a scanner of a new stream.
func NewScanner(o Options, c *Conversation, out Output) *Scanner {
	if out.Frame == nil {
		out.Frame = func([]byte, FrameKind) {}
	}
	if out.Stray == nil {
		out.Stray = func([]byte) {}
	}
	if out.Note == nil {
		out.Note = func(Note) {}
	}
	return &Scanner{opts: o.withDefaults(), conv: c, out: out, framed: true, mode: c.framing,
		cand: new(machine), clean: value{m: new(machine)}}
}

// Stats returns the counts so far.
func (s *Scanner) Stats() Stats { return s.stats }

// Write takes the next bytes of the server, printed not later than now. They
// are not kept beyond the call.
func (s *Scanner) Write(p []byte, now time.Time) {
	s.Tick(now)
	if len(p) == 0 {
		return
	}
	s.stats.In += int64(len(p))
	if s.mode == Raw {
		s.frameOut(p, RawBytes)
		return
	}
	s.now = now
	s.data = p
	if len(s.buf) > 0 {
		s.buf = append(s.buf, p...)
		s.data = s.buf
	}
	s.process(false)
	s.keep()
}

// Tick lets time pass: frames whose wait is over are passed on.
func (s *Scanner) Tick(now time.Time) {
	s.now = now
	s.follow()
	if s.mode == Raw {
		return
	}
	s.expire(now)
	if s.hasClean && !now.Before(s.clean.due) {
		s.data = s.buf
		passed := s.passClean(s.clean.end)
		if s.at == afterClean {
			s.at, s.tail = inTail, tailStray
			if passed {
				s.tail = tailPassed
			}
		}
		s.keep()
	}
	if s.at == inCandidate && s.line.done && !now.Before(s.line.due) {
		s.data = s.buf
		s.now = s.line.due.Add(-cleanWait)
		s.failAt(s.line.from)
		s.process(false)
		s.keep()
		s.Tick(now)
	}
}

// Deadline returns when Tick must be called next, zero when nothing waits.
func (s *Scanner) Deadline() time.Time {
	var t time.Time
	soonest := func(d time.Time) {
		if t.IsZero() || d.Before(t) {
			t = d
		}
	}
	if s.hasClean {
		soonest(s.clean.due)
	}
	if s.at == inCandidate && s.line.done {
		soonest(s.line.due)
	}
	if len(s.queue) > 0 {
		soonest(s.queue[0].due)
	}
	return t
}

// Close takes the end of the stream: a complete last frame passes without its
// newline, half a frame is stray and noted with its length.
func (s *Scanner) Close(now time.Time) {
	s.Tick(now)
	if s.mode != Raw {
		s.data = s.buf
		s.process(true)
		s.buf, s.data = nil, nil
		s.given, s.i = 0, 0
	}
	s.release(nil, nil)
	s.flushBlanks(true)
}

// keep saves what is not decided until more bytes come.
func (s *Scanner) keep() {
	from := s.given
	if s.at == inCandidate {
		from = min(from, s.cand.start)
	}
	rest := s.data[from:]
	switch {
	case len(rest) == 0:
		s.buf = s.buf[:0]
		if cap(s.buf) > keepBuffer {
			s.buf = nil
		}
	case len(s.buf) > 0 && from < len(s.buf)/2:
		// Not worth moving yet: what is moved is never more than what went.
		s.data = nil
		return
	default:
		s.buf = append(s.buf[:0], rest...)
	}
	s.data = nil
	s.base += int64(from)
	s.given -= from
	s.i -= from
	s.cand.shift(from)
	s.give -= from
	s.lf -= from
	s.lfFrom -= from
	s.line.shift(from)
	s.headAt -= from
	s.clean.start -= from
	s.clean.end -= from
}

// lines and headers say which frames are recognised now.
func (s *Scanner) lines() bool   { return s.mode <= JSON }
func (s *Scanner) headers() bool { return s.mode == Headers || s.mode == Auto }

// follow takes over what the conversation has found out.
func (s *Scanner) follow() {
	if s.mode == s.conv.framing {
		return
	}
	s.mode = s.conv.framing
	s.data = s.buf
	if s.mode == Raw {
		s.out.Note(Note{Kind: NoteUnknownProtocol})
		s.release(nil, nil)
		if s.mark > 0 {
			s.frameOut([]byte(bom), RawBytes)
			s.mark = 0
		}
		if len(s.blanks) > 0 {
			s.frameOut(s.blanks, RawBytes)
			s.blanks = nil
		}
		if s.given < len(s.data) {
			s.frameOut(s.data[s.given:], RawBytes)
		}
		s.buf, s.data, s.given, s.i, s.hasClean, s.at = nil, nil, 0, 0, false, atStart
		return
	}
	switch s.at {
	case inCandidate, inHeader, inBody:
		// Begun by rules that hold no more: look at it again.
		if s.at == inCandidate && s.given > s.cand.start {
			s.noise = s.data[s.given-1] != '\n' // it was given up to there
		}
		switch {
		case s.hasClean:
			s.passClean(s.clean.end)
			s.at, s.tail, s.noise = inTail, tailPassed, false
		case s.noise:
			s.at = inNoise
		default:
			s.at = atStart
		}
		s.i = s.given
		s.process(false)
	}
	s.keep()
}

// stops are the bytes at which noise is looked at, by what is looked for: those
// that may begin a frame, and LF.
var stops [3][256]bool

const (
	stopLines = iota
	stopHeaders
	stopBoth
)

func init() {
	for _, c := range "\n{[" {
		stops[stopLines][c] = true
		stops[stopBoth][c] = true
	}
	for _, c := range "\nCc" {
		stops[stopHeaders][c] = true
		stops[stopBoth][c] = true
	}
}

func (s *Scanner) stops() *[256]bool {
	switch {
	case !s.headers():
		return &stops[stopLines]
	case !s.lines():
		return &stops[stopHeaders]
	}
	return &stops[stopBoth]
}

// process looks at all of data. At the end of the stream nothing is left
// undecided.
func (s *Scanner) process(eof bool) {
	if !s.started && !s.begin(eof) {
		return
	}
	for {
		switch s.at {
		case atStart, afterClean, inTail:
			if !s.between(eof) {
				return
			}
		case inNoise:
			if !s.scanNoise() {
				return
			}
		case inCandidate:
			if !s.candidate(eof) {
				return
			}
		case inHeader:
			if !s.header(eof) {
				return
			}
		case inBody:
			if !s.body(eof) {
				return
			}
		case inSkip:
			if !s.skipLine(eof) {
				return
			}
		}
	}
}

// begin looks for a byte-order mark at the start of the stream.
func (s *Scanner) begin(eof bool) bool {
	if len(s.data) == 0 && !eof {
		return false
	}
	n := startsWithBOM(s.data)
	if n < 0 && !eof && len(s.data) > 0 {
		return false
	}
	s.started = true
	if n > 0 {
		s.mark = n
		s.given, s.i = n, n
	}
	return true
}

// between looks at white space, and at the byte behind it that says what the
// white space was.
func (s *Scanner) between(eof bool) bool {
	for s.i < len(s.data) {
		c := s.data[s.i]
		switch {
		case c == ' ' || c == '\t' || c == '\r':
			s.i++
			continue
		case c == '\n':
			s.i++
			s.endLine()
			continue
		case s.lines() && (c == '{' || c == '['):
			if s.at == inTail && s.tail == tailHeld {
				s.stray(s.i)
			}
			s.startCandidate(s.i)
			return true
		case s.headers() && (c|0x20 == 'c' || c|0x20 == 'x'):
			h := parseHeader(s.data[s.i:], s.at == atStart, s.opts.MaxFrame)
			if h.status == statMore && eof {
				h.status = statBad
			}
			if h.status == statMore && s.at == afterClean {
				// What follows says whether the value is alone on its line.
				return false
			}
			if h.status != statBad || h.over > 0 {
				if s.at == afterClean {
					s.passClean(s.clean.end)
				}
				s.stray(s.i)
				s.headFirst = s.at == atStart
				s.headAt, s.at = s.i, inHeader
				return true
			}
		}
		if s.at == afterClean {
			s.glueClean()
		}
		s.noise, s.at = true, inNoise
		return true
	}
	if !eof {
		return false
	}
	switch s.at {
	case afterClean:
		s.passClean(s.i)
	case atStart:
		if s.given < s.i {
			s.blank(s.data[s.given:s.i])
			s.given = s.i
		}
	default:
		s.endTail()
	}
	return false
}

// endLine takes the LF before i where only white space came since the place
// that at names.
func (s *Scanner) endLine() {
	switch s.at {
	case atStart:
		p := s.data[s.given:s.i]
		if bytes.IndexByte(p, ' ') < 0 && bytes.IndexByte(p, '\t') < 0 {
			s.blank(p)
		} else {
			s.strayOut(p)
		}
		s.given = s.i
	case afterClean:
		s.passClean(s.i)
	case inTail:
		s.endTail()
	}
	s.at, s.noise = atStart, false
}

// endTail gives the white space before i to the value that it ends.
func (s *Scanner) endTail() {
	p := s.data[s.given:s.i]
	switch s.tail {
	case tailPassed:
		s.stats.Removed += int64(len(p))
	case tailHeld:
		q := &s.queue[len(s.queue)-1]
		q.text = append(q.text, p...)
	default:
		s.strayOut(p)
	}
	s.given = s.i
}

// scanNoise passes noise to the diversion, at once, up to a byte that may begin
// a frame or end the line.
func (s *Scanner) scanNoise() bool {
	stop := s.stops()
	json := s.mode == JSON
	for s.i < len(s.data) {
		c := s.data[s.i]
		if !stop[c] || json && c != '\n' {
			s.i++
			continue
		}
		switch c {
		case '\n':
			s.i++
			s.stray(s.i)
			s.at, s.noise = atStart, false
			return true
		case '{', '[':
			s.stray(s.i)
			s.startCandidate(s.i)
			return true
		}
		h := parseHeader(s.data[s.i:], false, s.opts.MaxFrame)
		if h.status != statBad || h.over > 0 {
			s.stray(s.i)
			s.headAt, s.headFirst, s.at = s.i, false, inHeader
			return true
		}
		s.i++
	}
	s.stray(s.i)
	return false
}

// skipLine passes the rest of a line that is too long to the diversion.
func (s *Scanner) skipLine(eof bool) bool {
	n := bytes.IndexByte(s.data[s.i:], '\n')
	if n < 0 {
		s.long += int64(len(s.data) - s.i)
		s.i = len(s.data)
		s.stray(s.i)
		if !eof {
			return false
		}
	} else {
		s.long += int64(n)
		s.i += n + 1
		s.stray(s.i)
	}
	s.stats.TooLong++
	s.out.Note(Note{Kind: NoteTooLong, Size: s.long})
	s.at, s.noise = atStart, false
	return true
}
