package frame

import (
	"bytes"
	"regexp"
	"strconv"
	"unicode/utf16"
)

// runJSON is json framing: a line is a frame if it is one object or array, or
// several if nothing but white space is between them.
func (m *model) runJSON(b []byte) {
	if bytes.HasPrefix(b, []byte("\xef\xbb\xbf")) {
		m.bom = true
		b = b[3:]
	}
	for _, line := range bytes.SplitAfter(b, []byte("\n")) {
		if leadingSpace(line) == len(line) && (len(bytes.Trim(line, "\r\n")) == 0 || !bytes.HasSuffix(line, []byte("\n"))) {
			m.addStray(line, true)
			continue
		}
		for len(line) > 0 {
			n := m.value(line)
			m.addStray(line[:-min(n, 0)], false)
			line = line[max(n, -n):]
		}
	}
	m.blanks = nil
	m.flush(true)
}

// value takes a value off the front of a line, with the line end if it is the
// last, and returns its length; negative if it is no frame, and then of all the
// line unless it was followed by another.
func (m *model) value(line []byte) int {
	start := leadingSpace(line)
	if start == len(line) || line[start] != '{' && line[start] != '[' {
		return -len(line)
	}
	end, _ := modelParse(line, start)
	if end < 0 || m.faulty(line[start:end]) || bytes.IndexByte(line[start:end], '\n') >= 0 {
		return -len(line)
	}
	size := len(line)
	if next := end + leadingSpace(line[end:]); next < len(line) {
		if line[next] != '{' && line[next] != '[' {
			return -len(line)
		}
		if e, _ := modelParse(line, next); e < 0 || m.faulty(line[next:e]) {
			return -len(line)
		}
		size = end
	}
	text := bytes.TrimSuffix(line[end:size], []byte("\n"))
	tail := bytes.TrimRight(text, "\r")
	if (len(tail) < len(text) || m.bom) && !m.o.Repair {
		return -size
	}
	k := bytes.LastIndexByte(line[:start], '\r') + 1
	m.addStray(line[:k], false)
	m.frame(string(line[k:start])+modelRepair(line[start:end])+string(tail), nil, nil)
	return size
}

var (
	lengthLine  = regexp.MustCompile(`^(?i:content-length)[ \t]*:[ \t]*([0-9]{1,15})[ \t]*(\r{0,3})\n`)
	otherLine   = regexp.MustCompile(`^[A-Za-z0-9_-]+:[^\x00-\x08\x0a-\x1f]*(\r{0,3})\n`)
	firstOther  = regexp.MustCompile(`^(?i:content-|x-)`)
	lengthStart = regexp.MustCompile(`^(?i:content-length)`)
	blankLine   = regexp.MustCompile(`^(\r{0,3})\n`)
)

// modelHeader is a header block with the line ends it should have.
type modelHeader struct {
	size                  int // as it is written, 0 when it is none
	before, digits, after string
	odd                   bool // a line end is not CR LF
}

// modelBlock reads a header block at the front of b. start says that another
// header than the length may come first.
func modelBlock(b []byte, start bool) modelHeader {
	var h modelHeader
	out := &h.before
	for i, line := 0, 0; line < maxHeaderLine; line++ {
		rest, end := b[i:], []byte(nil)
		if m := blankLine.FindSubmatch(rest); m != nil && h.digits != "" {
			h.size = i + len(m[0])
			h.after += "\r\n"
			h.odd = h.odd || len(m[1]) != 1
			return h
		}
		if lengthStart.Match(rest) {
			m := lengthLine.FindSubmatchIndex(rest)
			if m == nil || h.digits != "" {
				break
			}
			h.before += string(rest[:m[2]])
			h.digits = string(rest[m[2]:m[3]])
			h.after = string(rest[m[3]:m[4]]) + "\r\n"
			out = &h.after
			end = rest[m[4]:m[5]]
			i += m[1]
		} else {
			m := otherLine.FindSubmatchIndex(rest)
			if m == nil || line == 0 && (!start || !firstOther.Match(rest)) {
				break
			}
			*out += string(rest[:m[2]]) + "\r\n"
			end = rest[m[2]:m[3]]
			i += m[1]
		}
		h.odd = h.odd || len(end) != 1
	}
	return modelHeader{}
}

// runHeaders is headers framing: every byte is tried as the begin of a block,
// each time from scratch.
func (m *model) runHeaders(b []byte) {
	if bytes.HasPrefix(b, []byte("\xef\xbb\xbf")) {
		m.bom = true
		b = b[3:]
	}
	start, given := true, 0 // start: a block with any first line may begin here
	stray := func(end int) {
		m.addStray(b[given:end], false)
		given = end
	}
	for i := 0; i < len(b); {
		switch c := b[i]; {
		case start && (c == ' ' || c == '\t' || c == '\r'):
			i++
			continue
		case c == '\n':
			i++
			m.addStray(b[given:i], start && len(bytes.Trim(b[given:i], "\r\n")) == 0)
			given, start = i, true
			continue
		}
		h := modelBlock(b[i:], start)
		length, _ := strconv.Atoi(h.digits)
		if n, text := m.body(b[i+h.size:], length); h.size > 0 && n > 0 {
			end, same := i+h.size+n, text == string(b[i+h.size:i+h.size+n])
			if !m.o.Repair && (h.odd || !same || m.bom) {
				stray(end)
			} else {
				stray(i)
				if !same || n != length {
					h.digits = strconv.Itoa(len(text))
				}
				m.flush(true)
				m.wire = append(m.wire, h.before+h.digits+h.after+text...)
				m.framed, given = true, end
			}
			i, start = end, true
			continue
		}
		i++
		stray(i)
		start = false
	}
	if start {
		m.addStray(b[given:], true)
	}
	m.blanks = nil
	m.flush(true)
}

// body returns the end of the message at the front of b of which length was
// declared, and what it is once it is repaired; -1 if there is none.
func (m *model) body(b []byte, length int) (end int, repaired string) {
	at := leadingSpace(b)
	if at >= min(length, len(b)) || b[at] != '{' && b[at] != '[' {
		return -1, ""
	}
	end, node := modelParse(b, at)
	if end < 0 || !modelRPC(node) {
		return -1, ""
	}
	whole := repairValue(nil, b[:end], faultNumber|faultUTF8)
	if end > length {
		text := []rune(string(repairValue(nil, b[:end], faultUTF8)))
		if !m.o.Repair || len(text) != length && len(utf16.Encode(text)) != length {
			return -1, ""
		}
		return end, string(whole)
	}
	if len(b) < length || end+leadingSpace(b[end:length]) < length {
		return -1, ""
	}
	return length, string(whole) + string(b[end:length])
}
