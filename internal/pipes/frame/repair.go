package frame

import "unicode/utf8"

// render appends the JSON value v to dst with its faults put right. Line breaks
// between tokens, with a CR before, become one space each; NaN, Infinity and
// -Infinity outside strings become null; bytes in strings that are not UTF-8
// become U+FFFD. Every other byte stays.
func (s *Scanner) render(dst, v []byte, flags faults) []byte {
	if flags&faultBreak != 0 {
		s.repaired(RepairJoined)
	}
	if flags&faultNumber != 0 {
		s.repaired(RepairNumber)
	}
	if flags&faultUTF8 != 0 {
		s.repaired(RepairUTF8)
	}
	if flags == 0 {
		return append(dst, v...)
	}
	return repairValue(dst, v, flags)
}

func repairValue(dst, v []byte, flags faults) []byte {
	for i := 0; i < len(v); {
		switch c := v[i]; {
		case c == '"':
			end := skipString(v, i)
			if flags&faultUTF8 != 0 {
				dst = appendUTF8(dst, v[i:end])
			} else {
				dst = append(dst, v[i:end]...)
			}
			i = end
			continue
		case c == '\r' && i+1 < len(v) && v[i+1] == '\n' && flags&faultBreak != 0:
			// The LF makes the space.
		case c == '\n' && flags&faultBreak != 0:
			dst = append(dst, ' ')
		case c == 'N':
			dst = append(dst, "null"...)
			i += len("NaN")
			continue
		case c == 'I':
			if n := len(dst); n > 0 && dst[n-1] == '-' {
				dst = dst[:n-1]
			}
			dst = append(dst, "null"...)
			i += len("Infinity")
			continue
		default:
			dst = append(dst, c)
		}
		i++
	}
	return dst
}

func appendUTF8(dst, b []byte) []byte {
	for len(b) > 0 {
		r, n := utf8.DecodeRune(b)
		if r == utf8.RuneError && n == 1 {
			n, _ = subpart(b)
			dst = append(dst, "\ufffd"...)
		} else {
			dst = append(dst, b[:n]...)
		}
		b = b[n:]
	}
	return dst
}
