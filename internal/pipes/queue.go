package pipes

import (
	"bytes"
	"io"
	"math"
	"sync"
	"time"
)

const (
	// QueueSize is the capacity of a Queue that is not told another, in bytes.
	QueueSize = 1 << 20

	queueStart = 4 << 10  // first allocation, in bytes
	lineWindow = 64 << 10 // how far a drop looks for the end of a line
)

// Queue is a bounded first-in, first-out queue of bytes between producers that
// must not wait and one consumer that may be slow, stalled or dead.
//
// When a Put does not fit, the oldest bytes are dropped, and counted: as many
// as it takes, and then on to the end of the line that this cut into, so that
// what is left starts with a whole line. That search ends after 64 KiB or a
// quarter of the capacity; where it finds no end of a line, no more is dropped
// than needed. Put never drops bytes that the consumer has taken already.
//
// Memory starts small, doubles when needed and never exceeds the capacity.
// Methods may be called from any goroutine, Next from one at a time.
type Queue struct {
	mu   sync.Mutex
	more sync.Cond // tells the consumer of bytes, Close and Abandon
	gone chan struct{}

	ring []byte
	head int // index of the oldest byte in ring
	size int // bytes held
	max  int

	// Positions in the stream of all bytes accepted, and counts.
	in      uint64 // end of the stream so far
	done    uint64 // the consumer needs nothing before this any more
	taken   uint64 // bytes that Next has returned
	dropped uint64
	gap     uint64 // dropped since the last Next
	trusted uint64 // Pace waits again once taken has reached this

	closed, abandoned bool
}

// NewQueue returns a Queue that holds at most max bytes, QueueSize when max is
// not positive.
func NewQueue(max int) *Queue {
	if max <= 0 {
		max = QueueSize
	}
	q := &Queue{max: max}
	q.more.L = &q.mu
	return q
}

// Put appends a copy of p and never waits. Bytes that come after Close or
// Abandon are dropped, and counted like others.
func (q *Queue) Put(p []byte) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if len(p) == 0 {
		return
	}
	if q.closed || q.abandoned {
		q.dropped += uint64(len(p))
		return
	}
	q.in += uint64(len(p))
	if over := q.size + len(p) - q.max; over > 0 {
		p = q.drop(p, over)
	}
	q.reserve(len(p))
	tail := (q.head + q.size) % len(q.ring)
	copy(q.ring, p[copy(q.ring[tail:], p):])
	q.size += len(p)
	q.more.Signal()
}

// drop drops at least n of the oldest of the queue's bytes followed by p and
// returns what is left of p.
func (q *Queue) drop(p []byte, n int) []byte {
	n += q.toLineStart(p, n)
	held := min(n, q.size)
	q.discard(held)
	q.dropped += uint64(n)
	q.gap += uint64(n)
	return p[n-held:]
}

// toLineStart says how many bytes lie between position n >= 1 of the queue's
// bytes followed by p and the next start of a line, 0 when none is near.
func (q *Queue) toLineStart(p []byte, n int) int {
	// The byte before n counts: if it ends a line, n is the start of one.
	skip, window, seen := n-1, min(lineWindow, q.max/4)+1, 0
	first, second := q.parts()
	for _, part := range [][]byte{first, second, p} {
		if skip >= len(part) {
			skip -= len(part)
			continue
		}
		part = part[skip:]
		skip = 0
		part = part[:min(len(part), window-seen)]
		if i := bytes.IndexByte(part, '\n'); i >= 0 {
			return seen + i
		}
		seen += len(part)
	}
	return 0
}

// parts returns the bytes held, oldest first.
func (q *Queue) parts() (first, second []byte) {
	end := q.head + q.size
	if end <= len(q.ring) {
		return q.ring[q.head:end], nil
	}
	return q.ring[q.head:], q.ring[:end-len(q.ring)]
}

// discard forgets the n oldest bytes held.
func (q *Queue) discard(n int) {
	q.size -= n
	if q.size == 0 {
		q.head = 0
		return
	}
	q.head = (q.head + n) % len(q.ring)
}

// reserve makes room for n more bytes, which fit below max.
func (q *Queue) reserve(n int) {
	need := q.size + n
	if need <= len(q.ring) {
		return
	}
	ring := make([]byte, min(max(need, 2*len(q.ring), queueStart), q.max))
	first, second := q.parts()
	copy(ring[copy(ring, first):], second)
	q.ring, q.head = ring, 0
}

// Next waits for bytes, takes as many as are there and fit into buf, and says
// how many bytes were dropped right before them. Where not all fit, it ends with
// the last whole line, if there is one. A call of Next also says that the
// consumer is done with the bytes of the call before. After Close, Next returns
// what is left and then io.EOF; after Abandon io.ErrClosedPipe.
func (q *Queue) Next(buf []byte) (n int, gap uint64, err error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.done = q.in - uint64(q.size)
	q.moved()
	for q.size == 0 && !q.closed && !q.abandoned {
		q.more.Wait()
	}
	switch {
	case q.abandoned:
		return 0, 0, io.ErrClosedPipe
	case q.size == 0:
		return 0, 0, io.EOF
	}
	first, second := q.parts()
	n = copy(buf, first)
	n += copy(buf[n:], second)
	if n < q.size {
		if end := bytes.LastIndexByte(buf[:n], '\n'); end >= 0 {
			n = end + 1
		}
	}
	q.discard(n)
	q.taken += uint64(n)
	gap, q.gap = q.gap, 0
	q.moved() // there is room
	return n, gap, nil
}

// Close tells the consumer that no more will be Put.
func (q *Queue) Close() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.closed = true
	q.more.Broadcast()
	q.moved() // Pace need not wait any more
}

// Abandon says that there is no consumer any more: what the queue holds, and
// every later Put, is dropped.
func (q *Queue) Abandon() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.abandoned = true
	q.dropped += uint64(q.size)
	q.ring, q.head, q.size = nil, 0, 0
	q.done = math.MaxUint64
	q.more.Broadcast()
	q.moved()
}

// Dropped returns the number of bytes dropped so far.
func (q *Queue) Dropped() uint64 {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.dropped
}

// Done returns how many bytes the consumer is done with, dropped ones included.
func (q *Queue) Done() uint64 {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.done
}

// Flush waits until the consumer is done with all that was Put before the
// call, or the queue was abandoned. It returns false when the deadline came
// first.
func (q *Queue) Flush(deadline time.Time) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	for target := q.in; q.done < target; {
		if !q.await(deadline) {
			return false
		}
	}
	return true
}

// Pace is for producers that may wait a little, so that nothing is dropped
// only because the consumer is slower than they are: it waits until n bytes
// fit, for patience at most. When a wait was in vain, Pace does not wait again
// until the consumer has taken a whole queue's worth of bytes; so a reader that
// stalls costs one patience, and one that trickles hardly more.
func (q *Queue) Pace(n int, patience time.Duration) {
	q.mu.Lock()
	defer q.mu.Unlock()
	full := func() bool {
		return q.size > 0 && q.size+n > q.max && !q.closed && !q.abandoned
	}
	if !full() || q.taken < q.trusted {
		return
	}
	for deadline := time.Now().Add(patience); full(); {
		if !q.await(deadline) {
			q.trusted = q.taken + uint64(q.max)
			return
		}
	}
}

// await releases the lock until the consumer has moved on or the deadline has
// come, when it returns false.
func (q *Queue) await(deadline time.Time) bool {
	left := time.Until(deadline)
	if left <= 0 {
		return false
	}
	if q.gone == nil {
		q.gone = make(chan struct{})
	}
	gone := q.gone
	q.mu.Unlock()
	defer q.mu.Lock()
	timer := time.NewTimer(left)
	defer timer.Stop()
	select {
	case <-gone:
		return true
	case <-timer.C:
		return false
	}
}

// moved wakes those who wait for the consumer.
func (q *Queue) moved() {
	if q.gone != nil {
		close(q.gone)
		q.gone = nil
	}
}
