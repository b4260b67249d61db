package frame

// Idle reports whether all that was written has gone somewhere, and nothing of
// a line that has passed is still to come.
func (s *Scanner) Idle() bool {
	return len(s.buf)+len(s.queue)+len(s.blanks) == 0 && (s.at != inTail || s.tail != tailPassed)
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
