package stray

import (
	"bytes"
	"maps"
	"slices"
	"time"
)

const (
	// LineMax is the longest line that Log passes on whole, in bytes.
	LineMax = 64 << 10

	// LineCut ends each piece of a longer line but its last.
	LineCut = " [line goes on]"
)

// Log is the sink that makes each line a call of a function.
type Log struct {
	meter
	emit    func(line []byte, source string)
	behind  Sink
	closed  bool
	dropped uint64
}

// NewLog returns a Log that calls emit for each line, one at a time, without
// its line end (LF or CR LF). A line longer than LineMax comes in pieces of
// LineMax bytes and LineCut. A last line without LF comes at Flush or Close.
// The line is emit's for the call only. emit must not wait.
//
// behind, if not nil, is the sink that takes what emit makes of the lines; Log
// paces and flushes it, but does not close it.
func NewLog(emit func(line []byte, source string), behind Sink) *Log {
	return &Log{emit: emit, behind: behind}
}

func (s *Log) Put(source string, p []byte) {
	s.mu.Lock()
	defer s.mu.Unlock()
	t := s.count(source, p)
	if s.closed {
		s.dropped += uint64(len(p))
		return
	}
	for len(p) > 0 {
		line, rest, whole := bytes.Cut(p, lineEnd)
		if room := LineMax - len(t.part); len(line) > room {
			t.part = append(append(t.part, line[:room]...), LineCut...)
			s.emitPart(source, t)
			p = p[room:]
			continue
		}
		p = rest
		switch {
		case !whole:
			t.part = append(t.part, line...)
		case len(t.part) == 0: // the usual case needs no copy
			s.emit(bytes.TrimSuffix(line, carriageReturn), source)
		default:
			t.part = bytes.TrimSuffix(append(t.part, line...), carriageReturn)
			s.emitPart(source, t)
		}
	}
}

var carriageReturn = []byte{'\r'}

func (s *Log) emitPart(source string, t *tally) {
	s.emit(t.part, source)
	t.part = t.part[:0]
}

func (s *Log) Pace(n int) {
	if s.behind != nil {
		s.behind.Pace(n)
	}
}

// Progress is that of the sink behind.
func (s *Log) Progress() uint64 {
	if s.behind == nil {
		return 0
	}
	return s.behind.Progress()
}

func (s *Log) Flush(deadline time.Time) bool {
	s.emitParts(false)
	return s.behind == nil || s.behind.Flush(deadline)
}

func (s *Log) Close(deadline time.Time) bool {
	s.emitParts(true)
	return s.behind == nil || s.behind.Flush(deadline)
}

// emitParts emits the lines that have no end yet.
func (s *Log) emitParts(last bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closed = s.closed || last
	for _, source := range slices.Sorted(maps.Keys(s.sources)) {
		if t := s.sources[source]; len(t.part) > 0 {
			s.emitPart(source, t)
		}
	}
}

// Totals counts as dropped only what came after Close; what the sink behind
// drops is in its own totals.
func (s *Log) Totals() Totals {
	t := s.totals()
	s.mu.Lock()
	defer s.mu.Unlock()
	t.Dropped = s.dropped
	return t
}
