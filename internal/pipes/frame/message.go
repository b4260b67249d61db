package frame

import (
	"unicode/utf16"
	"unicode/utf8"
)

// message is what the members of one message's top level say.
type message struct {
	has    members
	id     uint64 // hash of the value of id
	seq    uint64 // of seq
	reqSeq uint64 // of request_seq
}

type members uint16

const (
	hasRPC members = 1 << iota // jsonrpc is "2.0"
	hasID                      // id is a number or a string
	hasMethod
	hasResult // result or error
	hasSeq
	hasType
	isRequest  // type is "request"
	isResponse // type is "response"
	hasReqSeq
	dead // array: holds something that is no message
)

// answers returns the id that a response answers.
func (m *message) answers() (uint64, bool) {
	if m.has&(hasID|hasResult|hasMethod) == hasID|hasResult {
		return m.id, true
	}
	if m.has&(hasSeq|isResponse|hasReqSeq) == hasSeq|isResponse|hasReqSeq {
		return m.reqSeq, true
	}
	return 0, false
}

// asks returns the id that a request opens.
func (m *message) asks() (uint64, bool) {
	if m.has&(hasID|hasMethod|hasResult) == hasID|hasMethod {
		return m.id, true
	}
	if m.has&(hasSeq|isRequest) == hasSeq|isRequest {
		return m.seq, true
	}
	return 0, false
}

// own reports whether the sender started the message: a request, a
// notification or an event.
func (m *message) own() bool {
	return m.has&hasMethod != 0 || m.has&(hasSeq|hasType|isResponse) == hasSeq|hasType
}

// Ids are kept as 64-bit hashes of their values, so that a client's ids of any
// length cost nothing to keep.
const (
	hashStart = 14695981039346656037
	hashPrime = 1099511628211
)

func hashByte(h uint64, c byte) uint64 { return (h ^ uint64(c)) * hashPrime }

func hashUint(h, v uint64) uint64 {
	for range 8 {
		h = hashByte(h, byte(v))
		v >>= 8
	}
	return h
}

// hashNumber hashes a JSON number by its value: 1, 1.0 and 10e-1 are the same.
// It reads the digits without leading and trailing zeros and the power of ten.
func hashNumber(b []byte) uint64 {
	h := hashByte(hashStart, 'n')
	neg := len(b) > 0 && b[0] == '-'
	if neg {
		b = b[1:]
	}
	exp, zeros, digits := int64(0), int64(0), false
	frac := false
	for i, c := range b {
		switch c {
		case '.':
			frac = true
			continue
		case 'e', 'E':
			exp += parseExp(b[i+1:])
		case '0':
			if digits {
				zeros++
			}
			if frac {
				exp--
			}
			continue
		default:
			for ; zeros > 0; zeros-- {
				h = hashByte(h, '0')
			}
			digits = true
			h = hashByte(h, c)
			if frac {
				exp--
			}
			continue
		}
		break
	}
	if !digits {
		return hashByte(hashStart, 'z') // 0, -0 and 0.0
	}
	if neg {
		h = hashByte(h, '-')
	}
	return hashUint(h, uint64(exp+zeros))
}

func parseExp(b []byte) int64 {
	neg, v := false, int64(0)
	for _, c := range b {
		switch {
		case c == '-':
			neg = true
		case c >= '0' && c <= '9' && v < 1<<40:
			v = v*10 + int64(c-'0')
		}
	}
	if neg {
		return -v
	}
	return v
}

// hashString hashes the inside of a JSON string by its value.
func hashString(b []byte, escaped bool) uint64 {
	h := hashByte(hashStart, 's')
	if escaped {
		b = unescape(b)
	}
	for _, c := range b {
		h = hashByte(h, c)
	}
	return h
}

// unescape returns the value of the inside of a valid JSON string. Only keys
// and ids that hold a backslash come here.
func unescape(b []byte) []byte {
	out := make([]byte, 0, len(b))
	for i := 0; i < len(b); i++ {
		if b[i] != '\\' || i+1 >= len(b) {
			out = append(out, b[i])
			continue
		}
		i++
		switch b[i] {
		case 'b':
			out = append(out, '\b')
		case 'f':
			out = append(out, '\f')
		case 'n':
			out = append(out, '\n')
		case 'r':
			out = append(out, '\r')
		case 't':
			out = append(out, '\t')
		case 'u':
			r := hex4(b[i+1:])
			i += 4
			if utf16.IsSurrogate(r) && i+6 < len(b) && b[i+1] == '\\' && b[i+2] == 'u' {
				if both := utf16.DecodeRune(r, hex4(b[i+3:])); both != utf8.RuneError {
					r = both
					i += 6
				}
			}
			out = utf8.AppendRune(out, r)
		default:
			out = append(out, b[i])
		}
	}
	return out
}

func hex4(b []byte) rune {
	var r rune
	for i := 0; i < 4 && i < len(b); i++ {
		c := b[i] | 0x20
		if c >= 'a' {
			r = r<<4 | rune(c-'a'+10)
		} else {
			r = r<<4 | rune(c-('0'|0x20))
		}
	}
	return r
}
