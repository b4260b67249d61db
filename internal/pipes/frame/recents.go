package frame

import "bytes"

// recents are the last messages of one direction. Short ones are kept whole,
// of long ones a hash.
type recents struct {
	ring [64]recent
	next int
}

type recent struct {
	used   bool
	size   int
	hash   uint64 // of the bytes of a long one
	saying        // a short one
}

const recentText = 4 << 10

func (r *recents) add(p []byte) {
	e := &r.ring[r.next]
	r.next = (r.next + 1) % len(r.ring)
	*e = recent{used: true, size: len(p), saying: saying{p: e.p[:0]}}
	if len(p) <= recentText {
		e.p = append(e.p, p...)
	} else {
		e.hash = hashLong(p)
	}
}

// has reports whether p was said lately: a short message in any spelling, a
// long one in the same bytes.
func (r *recents) has(p *saying) bool {
	for i := range r.ring {
		e := &r.ring[i]
		switch {
		case !e.used:
		case e.size > recentText:
			if e.size == len(p.p) && e.hash == hashLong(p.p) {
				return true
			}
		case e.is(p):
			return true
		}
	}
	return false
}

// hashLong reads eight bytes at a time.
func hashLong(p []byte) uint64 {
	h := uint64(hashStart)
	for len(p) >= 8 {
		h = (h ^ le64(p)) * hashPrime
		h ^= h >> 29
		p = p[8:]
	}
	for _, c := range p {
		h = hashByte(h, c)
	}
	return h
}

// saying is the text of a message, a valid one but for faults that are
// repaired, and the hash of its value once that was asked for.
type saying struct {
	p     []byte
	value uint64 // 0: not computed yet
}

// is reports whether two texts have the same value: white space, the order of
// members, escapes and the spelling of numbers make no difference. A log prints
// a message that was read in a spelling of its own. Texts longer than
// maxCompared and values deeper than maxDepth are the same only in the same
// bytes.
func (a *saying) is(b *saying) bool {
	if bytes.Equal(a.p, b.p) {
		return true
	}
	a.compute()
	b.compute()
	return a.value == b.value && a.value != incomparable
}

func (a *saying) compute() {
	switch {
	case a.value > 0:
	case len(a.p) > maxCompared:
		a.value = incomparable
	default:
		h, _ := hashValue(a.p, leadingSpace(a.p), 0)
		a.value = max(h, incomparable)
	}
}

const (
	incomparable = 1
	maxCompared  = 1 << 20 // bytes
	maxDepth     = 1 << 10 // levels
)

// hashValue hashes the value at i, where no white space is, and returns the
// index behind it. It is incomparable if the value nests deeper than maxDepth.
func hashValue(b []byte, i, depth int) (h uint64, end int) {
	start := i
	switch b[i] {
	case '"':
		end = skipString(b, i)
		inner := b[i+1 : end-1]
		return hashString(inner, bytes.IndexByte(inner, '\\') >= 0), end
	case '{', '[':
		if depth == maxDepth {
			return incomparable, len(b)
		}
		object := b[i] == '{'
		h = hashByte(hashStart, b[i])
		for i++; ; {
			i = nextToken(b, i)
			if i >= len(b) {
				return incomparable, len(b)
			}
			if b[i] == '}' || b[i] == ']' {
				return hashByte(h, 0), i + 1
			}
			var one uint64
			one, i = hashValue(b, i, depth+1)
			if object {
				i = nextToken(b, i)
				if i >= len(b) {
					return incomparable, len(b)
				}
				var v uint64
				v, i = hashValue(b, i, depth+1)
				h += hashUint(one, v) // members have no order
			} else {
				h = hashUint(h, one)
			}
		}
	}
	for i < len(b) && b[i] > ' ' && b[i] != ',' && b[i] != ']' && b[i] != '}' && b[i] != ':' {
		i++
	}
	if c := b[start]; c >= '0' && c <= '9' || c == '-' && start+1 < i && b[start+1] != 'I' {
		return hashNumber(b[start:i]), i
	}
	for _, c := range b[start:i] {
		h = hashByte(h, c)
	}
	return h, i
}

// nextToken skips white space, commas and colons.
func nextToken(b []byte, i int) int {
	for i < len(b) && (b[i] <= ' ' || b[i] == ',' || b[i] == ':') {
		i++
	}
	return i
}
