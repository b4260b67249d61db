package frame

// header is what parseHeader found.
type header struct {
	status status
	end    int   // length of the block, empty line included
	length int   // declared length of the body
	from   int   // the digits of the length in the block
	to     int   // their end
	odd    bool  // a line ends with bare LF or CR CR LF
	over   int64 // declared length when it is beyond the limit, else 0
}

const (
	maxHeader     = 4 << 10 // bytes of a header block
	maxHeaderLine = 32      // lines of one
)

const contentLength = "content-length"

// parseHeader reads a header block at the front of b: names in any case, the
// length in any place, every other header kept. other says that the block may
// begin with another header than the length. A line ends with LF, with any
// number of CR before it. Whatever can't become a header with a usable length
// is refused at the first byte that shows it.
func parseHeader(b []byte, other bool, limit int) header {
	p := headerParser{b: b, limit: limit}
	for line := range maxHeaderLine {
		if cr, n := lineEnd(b[p.i:]); n < 0 {
			return p.result(statMore)
		} else if n > 0 { // the empty line
			if !p.found {
				return p.result(statBad)
			}
			p.endLine(cr, n)
			p.h.end = p.i
			return p.result(statDone)
		}
		if st := p.line(line == 0, other); st != statDone {
			return p.result(st)
		}
	}
	return p.result(statBad)
}

// headerParser reads the lines of a header block. Its methods return statDone
// for what is complete, statMore where b ends too early, and statBad for what
// can't be.
type headerParser struct {
	b     []byte
	limit int
	i     int // next byte to look at
	found bool
	h     header
}

func (p *headerParser) result(st status) header {
	p.h.status = st
	return p.h
}

// line reads one header and its line end. The first one is the length, unless
// other says that it may be another.
func (p *headerParser) line(first, other bool) status {
	length, st := p.name(first, other)
	if st != statDone {
		return st
	}
	switch {
	case p.i > maxHeader:
		return statBad
	case p.i >= len(p.b):
		return statMore
	case p.b[p.i] != ':':
		return statBad
	}
	p.i++
	if length {
		if st := p.length(); st != statDone {
			return st
		}
	} else {
		for p.i < len(p.b) && (p.b[p.i] >= ' ' || p.b[p.i] == '\t') {
			p.i++
		}
	}
	if p.i > maxHeader {
		return statBad
	}
	switch cr, n := lineEnd(p.b[p.i:]); {
	case n < 0:
		return statMore
	case n == 0:
		return statBad
	default:
		p.endLine(cr, n)
		return statDone
	}
}

// name reads the name of a header, and reports whether it is that of the length.
func (p *headerParser) name(first, other bool) (length bool, st status) {
	switch n := fold(p.b[p.i:], contentLength); {
	case n < 0:
		return false, statMore
	case n > 0:
		p.i += n
		p.space()
		return true, statDone
	}
	if first {
		if !other {
			return false, statBad
		}
		c, x := fold(p.b, "content-"), fold(p.b, "x-")
		switch {
		case c > 0 || x > 0:
		case c < 0 || x < 0:
			return false, statMore
		default:
			return false, statBad
		}
	}
	start := p.i
	for p.i < len(p.b) && tokenByte(p.b[p.i]) {
		p.i++
	}
	if p.i == start && p.i < len(p.b) {
		return false, statBad
	}
	return false, statDone
}

// length reads the value of the length, up to the line end.
func (p *headerParser) length() status {
	const maxDigits = 15
	if p.found {
		return statBad // two lengths: the first belongs to something broken
	}
	p.space()
	p.h.from = p.i
	v := int64(0)
	for p.i < len(p.b) && p.b[p.i] >= '0' && p.b[p.i] <= '9' && p.i-p.h.from <= maxDigits {
		v = v*10 + int64(p.b[p.i]-'0')
		p.i++
	}
	p.h.to = p.i
	switch digits := p.h.to - p.h.from; {
	case p.i >= len(p.b):
		return statMore
	case digits == 0 || digits > maxDigits:
		return statBad
	case v > int64(p.limit):
		p.h.over = v
		return statBad
	}
	p.space()
	p.h.length, p.found = int(v), true
	return statDone
}

func (p *headerParser) space() {
	for p.i < len(p.b) && (p.b[p.i] == ' ' || p.b[p.i] == '\t') {
		p.i++
	}
}

// endLine takes a line end of n bytes, cr of which are CR.
func (p *headerParser) endLine(cr, n int) {
	p.h.odd = p.h.odd || cr != 1
	p.i += n
}

// lineEnd returns the number of CR before the LF at the front of b, and the
// length of both; -1 when more bytes could make a line end, 0 when none is
// there.
func lineEnd(b []byte) (cr, n int) {
	for cr < len(b) && b[cr] == '\r' && cr < 4 {
		cr++
	}
	if cr == len(b) {
		return cr, -1
	}
	if b[cr] != '\n' {
		return cr, 0
	}
	return cr, cr + 1
}

func tokenByte(c byte) bool {
	return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '-' || c == '_'
}
