package stray

import (
	"io"
	"sync/atomic"
	"time"
)

// Pump carries one stream of a child into a sink.
type Pump struct {
	source string
	sink   Sink
	stop   func()
	bytes  atomic.Uint64 // carried so far
	done   chan struct{} // closed when nothing more will be read
}

// Start reads r in a goroutine of its own until it ends or fails, and Puts
// what comes into sink. r stays the caller's. stop must make a Read of r that
// waits return with an error, and later ones too.
func Start(source string, r io.Reader, sink Sink, stop func()) *Pump {
	p := &Pump{source: source, sink: sink, stop: stop, done: make(chan struct{})}
	go p.run(r)
	return p
}

func (p *Pump) run(r io.Reader) {
	defer close(p.done)
	buf := make([]byte, batchSize)
	for {
		n, err := r.Read(buf)
		if n > 0 {
			p.sink.Pace(n)
			p.sink.Put(p.source, buf[:n])
			p.bytes.Add(uint64(n))
		}
		if err != nil {
			// The end, or as good as one: a terminal says EIO for it.
			return
		}
	}
}

// Drain is for the time after the child's exit, when only processes that it
// left behind can keep the stream open. It waits for the end of the stream, or
// until nothing has come for quiet, for limit at most; then it stops the
// reading. It returns false if a Read is still under way in spite of stop.
func (p *Pump) Drain(quiet, limit time.Duration) bool {
	// Time goes by in slices, so that a stop of this process or of the whole
	// machine counts as one slice, and never as quiet: what the child wrote
	// may still be in the pipe.
	slice := max(quiet/3, time.Millisecond)
	seen := p.bytes.Load()
	for still, spent := time.Duration(0), time.Duration(0); still < quiet && spent < limit; spent += slice {
		if closesWithin(p.done, slice) {
			return true
		}
		still += slice
		if now := p.bytes.Load(); now != seen {
			seen, still = now, 0
		}
	}
	p.stop()
	return closesWithin(p.done, limit)
}

// closesWithin waits for done to be closed, and reports whether it was before the
// limit.
func closesWithin(done <-chan struct{}, limit time.Duration) bool {
	select {
	case <-done:
		return true
	case <-time.After(limit):
		return false
	}
}
