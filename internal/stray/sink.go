// Package stray takes what the server side prints beside the protocol to its
// place: stderr, a file, the log or nowhere.
//
// A [Sink] accepts stray bytes without ever waiting for the one who reads
// them; a [Pump] carries one stream of a child into a sink. Sinks that write
// have a queue and a goroutine of their own: when their reader stalls or dies
// the oldest bytes are dropped and counted. The wire never waits for it, and
// the child no longer than Pace says.
package stray

import (
	"bytes"
	"sync"
	"time"
)

// Sink accepts stray bytes. Methods may be called from any goroutine.
type Sink interface {
	// Put takes the next bytes of a source, such as "stdout". It does not wait
	// and does not keep p.
	Put(source string, p []byte)

	// Pace is for callers that may wait: before a Put of n bytes it waits for
	// room, so that a reader that is slow but alive loses nothing. It waits
	// for 100 ms at most, and after a wait in vain not again until the reader
	// has caught up.
	Pace(n int)

	// Flush waits until all that was Put before has reached its end or was
	// dropped. It returns false when the deadline came first.
	Flush(deadline time.Time) bool

	// Progress returns a number that grows with every piece that has reached
	// its end.
	Progress() uint64

	// Close is a Flush after which the sink takes no more. What has not been
	// written at the deadline is dropped. The sink's descriptors are closed
	// once nothing uses them.
	Close(deadline time.Time) bool

	// Totals returns what the sink has seen so far.
	Totals() Totals
}

// Count says how much came from one source.
type Count struct {
	Bytes uint64
	Lines uint64 // lines begun: an unfinished last one counts
}

// Totals says what a sink has taken and what became of it.
type Totals struct {
	Sources map[string]Count
	// Dropped counts the bytes that reached nobody because the reader stalled
	// or was gone, or the disk was full. Our own lines are included.
	Dropped uint64
}

// meter counts what each source has sent. The zero meter is ready.
type meter struct {
	mu      sync.Mutex
	sources map[string]*tally
}

type tally struct {
	Count
	open bool   // the last line has no end yet
	part []byte // what Log holds of it
}

// count is called with mu held.
func (m *meter) count(source string, p []byte) *tally {
	t := m.sources[source]
	if t == nil {
		if m.sources == nil {
			m.sources = make(map[string]*tally)
		}
		t = &tally{}
		m.sources[source] = t
	}
	if len(p) == 0 {
		return t
	}
	t.Bytes += uint64(len(p))
	t.Lines += uint64(bytes.Count(p, lineEnd))
	if t.open {
		t.Lines-- // it was counted when it began
	}
	if t.open = !bytes.HasSuffix(p, lineEnd); t.open {
		t.Lines++
	}
	return t
}

func (m *meter) totals() Totals {
	m.mu.Lock()
	defer m.mu.Unlock()
	sources := make(map[string]Count, len(m.sources))
	for name, t := range m.sources {
		sources[name] = t.Count
	}
	return Totals{Sources: sources}
}

var lineEnd = []byte{'\n'}

// Null is the sink that only counts. The zero Null is ready.
type Null struct{ meter }

func (s *Null) Put(source string, p []byte) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.count(source, p)
}

func (*Null) Pace(int)             {}
func (*Null) Flush(time.Time) bool { return true }
func (*Null) Progress() uint64     { return 0 }
func (*Null) Close(time.Time) bool { return true }

// Totals reports no byte as dropped: nobody wanted them.
func (s *Null) Totals() Totals { return s.totals() }
