package frame

import (
	"encoding/binary"
	"math/bits"
	"unicode/utf8"
)

const (
	ones = 0x0101010101010101
	tops = 0x8080808080808080
)

// machine checks one JSON object or array, finds its end and takes out what
// the top level says, all in one pass. It can stop at any byte and go on when
// more has come; it looks at no byte twice, but for the few of an escape or a
// multi-byte character that was cut.
//
// Why not a library: in processor time for messages of 100 B, 4 KiB and 1 MiB,
// this pass being 1, a check alone takes 2.5, 2.6 and 3.2 with encoding/json,
// 1.6, 1.4 and 1.5 with jsontext (duplicate names and invalid UTF-8 allowed),
// 1.05, 1.1 and 1.05 with gjson, and 5.1, 1.6 and 1.5 with gjson once the keys
// have been looked up. None of them can be stopped at any byte and go on,
// accepts what a repair needs, or tells invalid UTF-8 from valid on the way;
// with them a line that comes in pieces would be read again for each piece, or
// held back until its end.
//
// It accepts what a repair can put right, and says so in flags: NaN and
// Infinity outside strings, invalid UTF-8 inside, line breaks between tokens.
// Everything else is as strict as the standard says.
type machine struct {
	start int // of the value, in the bytes given to run
	pos   int // next byte to look at

	state  state
	flags  faults
	key    keyKind // of the value that comes next, at the level of messages
	inKey  bool    // the string is a key
	esc    bool    // the string holds a backslash
	level  int     // depth at which the members of messages stand: 1, or 2 in an array
	depth  int
	kinds  uint64   // innermost 64 containers, 1 is an object
	outer  []uint64 // the containers around them
	lit    string   // rest of a literal
	token  int      // where the string (after its quote) or number began
	chars  int      // bytes that don't begin a character
	astral int      // characters beyond U+FFFF

	msg   message   // the message that is open
	first message   // the first one that is complete
	more  []message // the rest of a batch, as many as maxBatch
	count int
	all   members // what all messages have
}

// maxBatch bounds what is remembered of one batch, in messages.
const maxBatch = 1 << 16

type faults uint8

const (
	faultBreak  faults = 1 << iota // line breaks between tokens
	faultNumber                    // NaN and the like
	faultUTF8
)

type keyKind uint8

const (
	keyNone keyKind = iota
	keyRPC
	keyID
	keySeq
	keyReqSeq
	keyType
)

type state uint8

const (
	inValue  state = iota // a value must come
	inFirst               // a value or the end of the array
	inMember              // a key or the end of the object
	inName                // a key must come
	inColon
	inAfter // a comma or the end of the container
	inString
	inLiteral
	inMinus
	inZero
	inInt
	inDot
	inFrac
	inExp
	inExpSign
	inExpInt
)

type status uint8

const (
	statMore status = iota // valid so far
	statDone               // pos is behind the closing bracket
	statBad                // pos is the byte that can't be
)

// begin starts at the bracket b[at].
func (m *machine) begin(b []byte, at int) {
	more, outer := m.more[:0], m.outer[:0]
	if cap(outer) > 1<<12 {
		outer = nil
	}
	if cap(more) > 1<<8 {
		more = nil
	}
	*m = machine{start: at, pos: at + 1, more: more, outer: outer, all: ^members(0)}
	m.depth = 1
	if b[at] == '{' {
		m.kinds, m.level, m.state = 1, 1, inMember
	} else {
		m.level, m.state = 2, inFirst
	}
}

// shift tells that n bytes were taken away at the front.
func (m *machine) shift(n int) {
	m.start -= n
	m.pos -= n
	m.token -= n
}

// array reports whether the value is an array.
func (m *machine) array() bool { return m.level == 2 }

// rpc reports whether a complete value is a JSON-RPC message or a batch.
func (m *machine) rpc() bool { return m.count > 0 && m.all&hasRPC != 0 && m.all&dead == 0 }

// hopeless reports whether the value, complete or not, can't be a message.
func (m *machine) hopeless() bool {
	return m.array() && m.count > 0 && (m.all&dead != 0 || m.all&hasRPC == 0)
}

// class of a byte inside a string: 0 is ordinary.
var inside [256]uint8

func init() {
	for c := range 256 {
		switch {
		case c == '"':
			inside[c] = 1
		case c == '\\':
			inside[c] = 2
		case c < 0x20:
			inside[c] = 3
		case c >= 0x80:
			inside[c] = 4
		}
	}
}

// run goes on at pos, up to the end of b.
func (m *machine) run(b []byte) status {
	i, st := m.pos, m.state
	for i < len(b) {
		c := b[i]
		switch st {
		case inString:
			for {
				// Eight bytes at a time: stop where one is a quote, a
				// backslash, a control character or not ASCII.
				for i+8 <= len(b) {
					v := le64(b[i:])
					q, e := v^(ones*'"'), v^(ones*'\\')
					// The lowest bit that is set is exact; a borrow can
					// only set wrong ones above it.
					hit := ((q-ones)&^q | (e-ones)&^e | (v-ones*0x20)&^v | v) & tops
					if hit != 0 {
						i += bits.TrailingZeros64(hit) >> 3
						break
					}
					i += 8
				}
				for i < len(b) && inside[b[i]] == 0 {
					i++
				}
				if i >= len(b) {
					return m.stop(i, st, statMore)
				}
				k := inside[b[i]]
				if k == 1 {
					break
				}
				n := 0
				switch k {
				case 2:
					m.esc = true
					n = escape(b[i:])
				case 4:
					n = m.rune(b[i:])
				}
				if n < 0 || k == 3 {
					return m.stop(i, st, statBad)
				}
				if n == 0 {
					return m.stop(i, st, statMore)
				}
				i += n
			}
			if m.inKey {
				st = inColon
				m.key = keyNone
				if m.depth == m.level {
					m.name(b[m.token:i])
				}
			} else {
				st = inAfter
				if m.key != keyNone && m.depth == m.level {
					m.text(b[m.token:i])
				}
			}
			i++
			continue

		case inZero, inInt, inFrac, inExpInt:
			for st != inZero && c >= '0' && c <= '9' {
				i++
				if i >= len(b) {
					return m.stop(i, st, statMore)
				}
				c = b[i]
			}
			switch {
			case c == '.' && (st == inInt || st == inZero):
				st = inDot
				i++
			case c|0x20 == 'e' && st != inExpInt:
				st = inExp
				i++
			default:
				m.number(b[m.token:i])
				st = inAfter
			}
			continue
		case inMinus:
			switch {
			case c == '0':
				st = inZero
			case c >= '1' && c <= '9':
				st = inInt
			case c == 'I':
				m.flags |= faultNumber
				m.lit, st = "nfinity", inLiteral
			default:
				return m.stop(i, st, statBad)
			}
			i++
			continue
		case inDot:
			if c < '0' || c > '9' {
				return m.stop(i, st, statBad)
			}
			st = inFrac
			i++
			continue
		case inExp:
			if c == '+' || c == '-' {
				st = inExpSign
				i++
				continue
			}
			fallthrough
		case inExpSign:
			if c < '0' || c > '9' {
				return m.stop(i, st, statBad)
			}
			st = inExpInt
			i++
			continue
		case inLiteral:
			if c != m.lit[0] {
				return m.stop(i, st, statBad)
			}
			m.lit = m.lit[1:]
			if m.lit == "" {
				st = inAfter
			}
			i++
			continue
		}

		// Between tokens.
		if c <= ' ' {
			switch c {
			case '\n':
				m.flags |= faultBreak
			case ' ', '\t', '\r':
			default:
				return m.stop(i, st, statBad)
			}
			i++
			continue
		}
		switch st {
		case inAfter:
			switch c {
			case ',':
				if m.kinds&1 != 0 {
					st = inName
				} else {
					st = inValue
				}
			case '}', ']':
				if (c == '}') != (m.kinds&1 != 0) {
					return m.stop(i, st, statBad)
				}
				if m.pop() {
					return m.stop(i+1, st, statDone)
				}
			default:
				return m.stop(i, st, statBad)
			}
		case inMember, inName:
			switch {
			case c == '"':
				st, m.inKey, m.esc, m.token = inString, true, false, i+1
			case c == '}' && st == inMember:
				st = inAfter
				if m.pop() {
					return m.stop(i+1, st, statDone)
				}
			default:
				return m.stop(i, st, statBad)
			}
		case inColon:
			if c != ':' {
				return m.stop(i, st, statBad)
			}
			st = inValue
		case inFirst, inValue:
			if m.level == 2 && m.depth == 1 && c != '{' && c != ']' {
				m.count++
				m.all |= dead
				m.all &^= hasRPC
			}
			switch {
			case c == '"':
				st, m.inKey, m.esc, m.token = inString, false, false, i+1
			case c == '{':
				m.push(1)
				st = inMember
				if m.depth == m.level {
					m.msg = message{}
				}
			case c == '[':
				m.push(0)
				st = inFirst
			case c == '0':
				st, m.token = inZero, i
			case c >= '1' && c <= '9':
				st, m.token = inInt, i
			case c == '-':
				st, m.token = inMinus, i
			case c == 't':
				m.lit, st = "rue", inLiteral
			case c == 'f':
				m.lit, st = "alse", inLiteral
			case c == 'n':
				m.lit, st = "ull", inLiteral
			case c == 'N':
				m.lit, st = "aN", inLiteral
				m.flags |= faultNumber
			case c == 'I':
				m.lit, st = "nfinity", inLiteral
				m.flags |= faultNumber
			case c == ']' && st == inFirst:
				st = inAfter
				if m.pop() {
					return m.stop(i+1, st, statDone)
				}
			default:
				return m.stop(i, st, statBad)
			}
		}
		i++
	}
	return m.stop(i, st, statMore)
}

func le64(b []byte) uint64 { return binary.LittleEndian.Uint64(b) }

func (m *machine) stop(i int, st state, s status) status {
	m.pos, m.state = i, st
	return s
}

func (m *machine) push(kind uint64) {
	if m.depth&63 == 0 {
		m.outer = append(m.outer, m.kinds)
		m.kinds = 0
	}
	m.kinds = m.kinds<<1 | kind
	m.depth++
}

// pop leaves the innermost container and reports whether it was the last.
func (m *machine) pop() bool {
	if m.depth == m.level && m.kinds&1 != 0 {
		m.all &= m.msg.has | dead
		if m.count == 0 {
			m.first = m.msg
			m.all &^= dead
		} else if len(m.more) < maxBatch {
			m.more = append(m.more, m.msg)
		}
		m.count++
	}
	m.key = keyNone
	m.depth--
	m.kinds >>= 1
	if m.depth&63 == 0 && m.depth > 0 {
		m.kinds = m.outer[len(m.outer)-1]
		m.outer = m.outer[:len(m.outer)-1]
	}
	return m.depth == 0
}

// name takes a key of a message. Of a key that comes twice the last counts.
func (m *machine) name(k []byte) {
	if m.esc {
		k = unescape(k)
	}
	switch string(k) {
	case "jsonrpc":
		m.key = keyRPC
		m.msg.has &^= hasRPC
	case "id":
		m.key = keyID
		m.msg.has &^= hasID
	case "method":
		m.msg.has |= hasMethod
	case "result", "error":
		m.msg.has |= hasResult
	case "seq":
		m.key = keySeq
		m.msg.has &^= hasSeq
	case "request_seq":
		m.key = keyReqSeq
		m.msg.has &^= hasReqSeq
	case "type":
		m.key = keyType
		m.msg.has &^= hasType | isRequest | isResponse
	}
}

// text takes a string that is the value of a key that matters.
func (m *machine) text(v []byte) {
	switch m.key {
	case keyID:
		m.msg.id = hashString(v, m.esc)
		m.msg.has |= hasID
	case keyRPC, keyType:
		if m.esc {
			v = unescape(v)
		}
		switch {
		case m.key == keyType:
			m.msg.has |= hasType
			switch string(v) {
			case "request":
				m.msg.has |= isRequest
			case "response":
				m.msg.has |= isResponse
			}
		case string(v) == "2.0":
			m.msg.has |= hasRPC
		}
	}
	m.key = keyNone
}

func (m *machine) number(v []byte) {
	if m.key == keyNone || m.depth != m.level {
		return
	}
	switch m.key {
	case keyID:
		m.msg.id = hashNumber(v)
		m.msg.has |= hasID
	case keySeq:
		m.msg.seq = hashNumber(v)
		m.msg.has |= hasSeq
	case keyReqSeq:
		m.msg.reqSeq = hashNumber(v)
		m.msg.has |= hasReqSeq
	}
	m.key = keyNone
}

// escape returns the length of the escape at b[0], 0 when it is cut, -1 when
// it is none.
func escape(b []byte) int {
	if len(b) < 2 {
		return 0
	}
	switch b[1] {
	case '"', '\\', '/', 'b', 'f', 'n', 'r', 't':
		return 2
	case 'u':
		for i := 2; i < 6; i++ {
			if i >= len(b) {
				return 0
			}
			c := b[i]
			if (c < '0' || c > '9') && (c|0x20 < 'a' || c|0x20 > 'f') {
				return -1
			}
		}
		return 6
	}
	return -1
}

// rune returns the length of the character at b[0], 0 when it is cut. Bytes
// that are no character are noted as a fault, as many at once as one U+FFFD
// stands for.
func (m *machine) rune(b []byte) int {
	r, n := utf8.DecodeRune(b)
	if r != utf8.RuneError || n > 1 {
		m.chars += n - 1
		if r > 0xffff {
			m.astral++
		}
		return n
	}
	n, whole := subpart(b)
	if !whole {
		return 0
	}
	m.flags |= faultUTF8
	m.chars += n - 1
	return n
}

// subpart returns how many bytes at the start of b, which is no valid
// character, begin one and are to be replaced by one U+FFFD, as decoders of
// browsers, Node and Python do. whole is false while more bytes could make it
// valid or longer.
func subpart(b []byte) (n int, whole bool) {
	lo, hi, need := byte(0x80), byte(0xbf), 0
	switch c := b[0]; {
	case c >= 0xc2 && c <= 0xdf:
		need = 1
	case c >= 0xe0 && c <= 0xef:
		need = 2
		switch c {
		case 0xe0:
			lo = 0xa0
		case 0xed:
			hi = 0x9f
		}
	case c >= 0xf0 && c <= 0xf4:
		need = 3
		switch c {
		case 0xf0:
			lo = 0x90
		case 0xf4:
			hi = 0x8f
		}
	default:
		return 1, true
	}
	for n = 1; n <= need; n++ {
		if n >= len(b) {
			return n, false
		}
		if b[n] < lo || b[n] > hi {
			return n, true
		}
		lo, hi = 0x80, 0xbf
	}
	return n, true
}
