package frame

// The last step before Output: what is blank, what waits for a held frame, and
// the counts.

// stray gives data up to end to the diversion, as far as it has not gone
// elsewhere yet.
func (s *Scanner) stray(end int) {
	if s.given < end {
		s.strayOut(s.data[s.given:end])
		s.given = end
	}
}

// strayOut gives bytes to the diversion, behind frames that are held.
func (s *Scanner) strayOut(p []byte) {
	if len(p) == 0 {
		return
	}
	if len(s.queue) > 0 {
		s.enqueueStray(p, false)
		return
	}
	s.strayNow(p)
}

func (s *Scanner) strayNow(p []byte) {
	s.flushBlanks(false)
	s.framed = false
	s.stats.StrayBytes += int64(len(p))
	s.out.Stray(p)
}

// blank takes a blank line. Repair: blank lines between frames are removed, and
// those before the first and behind the last frame; next to noise they are
// noise.
func (s *Scanner) blank(p []byte) {
	if len(s.queue) > 0 {
		s.enqueueStray(p, true)
		return
	}
	s.blankNow(p)
}

func (s *Scanner) blankNow(p []byte) {
	if !s.framed || !s.opts.Repair || len(s.blanks)+len(p) > maxBlanks {
		s.strayNow(p)
		return
	}
	s.blanks = append(s.blanks, p...)
}

const maxBlanks = 64 << 10

// flushBlanks says what the blank lines, and a byte-order mark, before the next
// bytes are: part of the noise, or repaired away before a frame.
func (s *Scanner) flushBlanks(frame bool) {
	if s.mark > 0 {
		n := s.mark
		s.mark = 0
		if frame && s.opts.Repair {
			s.repaired(RepairBOM)
			s.stats.Removed += int64(n)
		} else {
			s.stats.StrayBytes += int64(n)
			s.out.Stray([]byte(bom))
		}
	}
	if len(s.blanks) == 0 {
		return
	}
	if frame {
		s.repaired(RepairBlank)
		s.stats.Removed += int64(len(s.blanks))
	} else {
		s.stats.StrayBytes += int64(len(s.blanks))
		s.out.Stray(s.blanks)
	}
	s.blanks = s.blanks[:0]
}

// frameNow gives one frame to the wire.
func (s *Scanner) frameNow(p []byte, kind FrameKind) {
	s.flushBlanks(true)
	s.framed = true
	s.frameOut(p, kind)
}

func (s *Scanner) frameOut(p []byte, kind FrameKind) {
	if kind != RawBytes {
		s.stats.Frames++
	}
	s.stats.FrameBytes += int64(len(p))
	s.out.Frame(p, kind)
}

// repaired counts a repair and notes the first of its kind.
func (s *Scanner) repaired(r Repair) {
	s.stats.Repairs[r]++
	if !s.noted[r] {
		s.noted[r] = true
		s.out.Note(Note{Kind: NoteRepair, Repair: r})
	}
}

// halved notes that the stream ended within a message of which size bytes came.
func (s *Scanner) halved(size int) {
	if s.stats.Half > 0 {
		return // what is left of it is looked at again, and may look like one
	}
	s.stats.Half = 1
	s.out.Note(Note{Kind: NoteHalf, Size: int64(size)})
}
