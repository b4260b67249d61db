package frame

// Pending returns 0 when everything that was written has gone somewhere.
func (s *Scanner) Pending() int { return len(s.buf) + len(s.queue) + len(s.blanks) }
