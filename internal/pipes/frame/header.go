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
func parseHeader(b []byte, other bool, limit int) (h header) {
	h.status = statBad
	i, found := 0, false
	for line := 0; line < maxHeaderLine; line++ {
		start := i
		if cr, n := lineEnd(b[i:]); n != 0 {
			if n < 0 {
				h.status = statMore
				return
			}
			if line == 0 || !found {
				return
			}
			h.odd = h.odd || cr != 1
			h.end = i + n
			h.status = statDone
			return
		}
		length := false
		if n := fold(b[i:], contentLength); n > 0 {
			length = true
			i += n
		} else if n < 0 {
			h.status = statMore
			return
		} else {
			if line == 0 {
				if !other {
					return
				}
				c, x := fold(b, "content-"), fold(b, "x-")
				if c <= 0 && x <= 0 {
					if c < 0 || x < 0 {
						h.status = statMore
					}
					return
				}
			}
			for i < len(b) && tokenByte(b[i]) {
				i++
			}
			if i == start && i < len(b) {
				return
			}
		}
		for length && i < len(b) && (b[i] == ' ' || b[i] == '\t') {
			i++
		}
		if i > maxHeader {
			return
		}
		if i >= len(b) {
			h.status = statMore
			return
		}
		if b[i] != ':' {
			return
		}
		i++
		if length {
			if found {
				// Two lengths: the first belongs to something broken.
				return
			}
			for i < len(b) && (b[i] == ' ' || b[i] == '\t') {
				i++
			}
			h.from = i
			v := int64(0)
			for i < len(b) && b[i] >= '0' && b[i] <= '9' && i-h.from < 16 {
				v = v*10 + int64(b[i]-'0')
				i++
			}
			h.to = i
			if i >= len(b) {
				h.status = statMore
				return
			}
			if h.to == h.from || i-h.from >= 16 {
				return
			}
			if v > int64(limit) {
				h.over = v
			}
			for i < len(b) && (b[i] == ' ' || b[i] == '\t') {
				i++
			}
			h.length, found = int(min(v, int64(limit)+1)), true
			if h.over > 0 {
				return
			}
		} else {
			for i < len(b) && (b[i] >= ' ' || b[i] == '\t') {
				i++
			}
		}
		if i > maxHeader {
			return
		}
		cr, n := lineEnd(b[i:])
		if n < 0 {
			h.status = statMore
			return
		}
		if n == 0 {
			return
		}
		h.odd = h.odd || cr != 1
		i += n
	}
	return
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
