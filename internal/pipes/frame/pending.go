package frame

import "bytes"

// Pending returns 0 when everything that was written has gone somewhere.
func (s *Scanner) Pending() int { return len(s.buf) + len(s.queue) + len(s.blanks) }

// PastLineEnd returns what of p is to pass where the scanner looks no further:
// all but the line end of a frame that has passed without it.
func (s *Scanner) PastLineEnd(p []byte) []byte {
	if s.at == inTail && s.tail == tailPassed {
		s.at = atStart
		if rest, ends := bytes.CutPrefix(bytes.TrimPrefix(p, []byte("\r")), []byte("\n")); ends {
			return rest
		}
	}
	return p
}

// Surrender gives all that has not gone anywhere yet to the diversion, in order
// and as it came: nothing on this descriptor is a frame any more.
func (s *Scanner) Surrender() {
	rest := s.buf[s.given:]
	for i := range s.queue {
		s.strayNow(s.queue[i].text)
	}
	s.flushBlanks(false)
	if len(rest) > 0 {
		s.strayNow(rest)
	}
	s.buf, s.given, s.i, s.hasClean, s.at = nil, 0, 0, false, inNoise
	s.queue, s.waiting, s.queued = nil, nil, 0
}
