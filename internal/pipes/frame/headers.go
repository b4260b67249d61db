package frame

import (
	"strconv"
	"unicode/utf8"
)

// Header framing.
//
// A header block has one Content-Length, in any case and place, and keeps all
// its other lines. The body is one JSON object or array with nothing but white
// space around it that ends at the declared length and looks like the client's
// own: jsonrpc, or seq and type. As soon as the JSON shows that it can't be so,
// the block is noise, and the search for the next Content-Length goes on behind
// its first byte. Nothing is allocated by a declared length.

// header goes on with a block at headAt.
func (s *Scanner) header(eof bool) bool {
	h := parseHeader(s.data[s.headAt:], s.headFirst, s.opts.MaxFrame)
	switch {
	case h.status == statMore && !eof:
		return false
	case h.status != statDone:
		if h.status == statMore && h.to > h.from {
			s.halved(len(s.data) - s.headAt)
		}
		if h.over > 0 {
			s.stats.TooLong++
			s.out.Note(Note{Kind: NoteTooLong, Size: h.over})
		}
		s.failHeader()
		return true
	}
	s.head, s.begun, s.at = h, false, inBody
	s.i = s.headAt + h.end
	return true
}

func (s *Scanner) failHeader() {
	s.i = s.headAt + 1
	s.stray(s.i)
	s.noise, s.at = true, inNoise
}

// body goes on with the body of the block.
func (s *Scanner) body(eof bool) bool {
	end := s.headAt + s.head.end + s.head.length
	m := s.cand
	if !s.begun {
		lim := min(len(s.data), end)
		for s.i < lim && leadingSpace(s.data[s.i:s.i+1]) == 1 {
			s.i++
		}
		switch {
		case s.i == end || s.i < lim && s.data[s.i] != '{' && s.data[s.i] != '[':
			s.failHeader()
			return true
		case s.i == lim:
			return s.wantBody(eof)
		}
		m.begin(s.data, s.i)
		s.begun, s.whole = true, false
	}
	for !s.whole {
		// A length that counted characters is short by the bytes that begin
		// none (slack), and the last character may not have come whole
		// (ahead). There must still be room to close every open bracket.
		slack, ahead := 0, 0
		if s.opts.Repair {
			slack, ahead = m.chars, utf8.UTFMax-1
		}
		lim := end + slack + ahead
		st := m.run(s.data[:min(len(s.data), lim)])
		switch {
		case st == statBad || m.all&dead != 0 && m.count > 0:
			s.failHeader()
			return true
		case st == statDone:
			s.whole, s.i = true, m.pos
			continue
		}
		more := 0
		if s.opts.Repair {
			more = m.chars - slack
		}
		switch {
		case m.pos-slack-more+m.depth > end, more == 0 && len(s.data) >= lim:
			s.failHeader()
			return true
		case len(s.data) < lim:
			return s.wantBody(eof)
		}
	}
	return s.endBody(eof)
}

// endBody goes on behind the bracket that closes the body: white space up to the
// declared length, unless that has counted characters.
func (s *Scanner) endBody(eof bool) bool {
	m := s.cand
	from := s.headAt + s.head.end
	end := from + s.head.length
	if m.pos > end {
		// Characters were counted: code points, or UTF-16 units.
		n := m.pos - from - m.chars
		if n != s.head.length && n+m.astral != s.head.length {
			s.failHeader()
			return true
		}
		s.passBody(m.pos)
		return true
	}
	for s.i < end && s.i < len(s.data) {
		if leadingSpace(s.data[s.i:s.i+1]) == 0 {
			s.failHeader()
			return true
		}
		s.i++
	}
	if s.i < end {
		return s.wantBody(eof)
	}
	s.passBody(end)
	return true
}

// wantBody waits for more of a body.
func (s *Scanner) wantBody(eof bool) bool {
	if !eof {
		return false
	}
	s.halved(len(s.data) - s.headAt)
	s.failHeader()
	return true
}

// passBody passes the message whose body ends at end.
func (s *Scanner) passBody(end int) {
	m := s.cand
	const dap = hasSeq | hasType
	rpc := m.rpc()
	other := m.count > 0 && m.all&(dap|dead) == dap
	switch style := s.conv.style; {
	case style&hasRPC != 0:
		other = false
	case style&dap == dap:
		rpc = false
	}
	if !rpc && !other {
		s.failHeader()
		return
	}
	from := s.headAt + s.head.end
	flags := m.flags &^ faultBreak // a body may have lines
	short := end-from != s.head.length
	fault := flags != 0 || short || s.head.odd
	s.i, s.noise, s.at = end, false, atStart
	if (fault || s.mark > 0) && !s.opts.Repair || s.opts.StrictIDs && s.unasked(m) {
		s.stray(end)
		return
	}
	s.stray(s.headAt)
	if len(s.queue) > 0 {
		s.release(m, s.data[m.start:m.pos])
	}
	p := s.data[s.headAt:end]
	if fault {
		p = s.rebuild(p, end-from, flags, short)
	}
	s.frameNow(p, s.passed(m, s.data[m.start:m.pos], true))
	s.given = end
	if cap(s.scratch) > keepBuffer {
		s.scratch = nil
	}
}

// rebuild writes a frame anew: CR LF behind each header line, the length of the
// body as it is.
func (s *Scanner) rebuild(p []byte, size int, flags faults, short bool) []byte {
	if s.head.odd {
		s.repaired(RepairHeaderEnd)
	}
	if short {
		s.repaired(RepairLength)
	}
	body := p[s.head.end:]
	if flags != 0 {
		body = s.render(nil, body, flags)
		size = len(body)
	}
	out := s.scratch[:0]
	for i := 0; i < s.head.end; {
		if i == s.head.from {
			if short || flags != 0 {
				out = strconv.AppendInt(out, int64(size), 10)
				i = s.head.to
				continue
			}
		}
		if _, n := lineEnd(p[i:]); n > 0 {
			out = append(out, "\r\n"...)
			i += n
			continue
		}
		out = append(out, p[i])
		i++
	}
	out = append(out, body...)
	s.scratch = out
	s.changed(len(p), len(out))
	return out
}
