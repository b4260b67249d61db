package stray

import (
	"bytes"
	"errors"
	"io"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/wireguardrun/wireguardrun/internal/pipes"
)

const (
	batchSize = 16 << 10               // most bytes of one write; the finest that Progress shows
	fileBatch = 512 << 10              // of a file: others write there too, and the longest line of a Log stays whole
	patience  = 100 * time.Millisecond // what Pace waits at most
	lastCall  = 100 * time.Millisecond // for the goroutine to end after its last write
)

// Options are what all sinks that write have in common. The functions are
// called from the sink's goroutine and must not wait; each may be nil.
type Options struct {
	// Capacity of the queue in bytes, pipes.QueueSize when not positive.
	Capacity int

	// Gap returns the text, if any, that stands in the stream where that many
	// bytes were dropped because the reader did not keep up. It should end its
	// line.
	Gap func(dropped uint64) []byte

	// Failed is told the first error of a write.
	Failed func(error)
}

// stream is the part of Stderr and File that takes bytes through a queue to a
// writer in a goroutine of its own.
type stream struct {
	meter // its lock also keeps Puts in the order of the queue
	Options
	open bool // the last byte Put did not end a line; guarded by mu

	queue *pipes.Queue
	lost  atomic.Uint64 // taken from the queue, not written
	done  chan struct{} // closed when the goroutine has ended
	abort func()        // makes a Write that waits return; nil if nothing can
}

// start takes ownership of w, which the goroutine closes when it ends: after
// Close, or at an error of w for which retry is false. One write has size bytes
// of the queue at most.
func (s *stream) start(w io.WriteCloser, o Options, size int, retry func(error) bool) {
	s.Options = o
	s.queue = pipes.NewQueue(o.Capacity)
	s.done = make(chan struct{})
	go s.run(w, size, retry)
}

func (s *stream) run(w io.WriteCloser, size int, retry func(error) bool) {
	defer close(s.done)
	defer w.Close()
	buf := make([]byte, size)
	fresh, failed := true, false
	for {
		n, gap, err := s.queue.Next(buf)
		if err != nil {
			return
		}
		batch := buf[:n]
		if gap > 0 {
			batch = append(s.notice(gap, fresh), batch...)
		}
		fresh = bytes.HasSuffix(batch, lineEnd)
		written, err := w.Write(batch)
		if err == nil {
			continue
		}
		// The notice, at the front of the batch, was never anybody's byte.
		s.lost.Add(uint64(min(n, len(batch)-written)))
		if !failed && s.Failed != nil {
			s.Failed(err)
		}
		failed = true
		if !retry(err) {
			s.queue.Abandon()
			return
		}
	}
}

// notice is what stands in place of dropped bytes. Without it, the half line
// before them and the line after them would read as one.
func (s *stream) notice(gap uint64, fresh bool) []byte {
	var text []byte
	if !fresh {
		text = append(text, '\n')
	}
	if s.Gap != nil {
		text = append(text, s.Gap(gap)...)
	}
	return text
}

func (s *stream) Put(source string, p []byte) {
	if len(p) == 0 {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.open = s.count(source, p).open
	s.queue.Put(p)
}

func (s *stream) Pace(n int) { s.queue.Pace(n, patience) }

func (s *stream) Progress() uint64 { return s.queue.Done() }

func (s *stream) Flush(deadline time.Time) bool { return s.queue.Flush(deadline) }

func (s *stream) Close(deadline time.Time) bool {
	s.queue.Close()
	flushed := s.queue.Flush(deadline)
	if !flushed {
		s.queue.Abandon()
		if s.abort != nil {
			s.abort()
		}
	}
	closesWithin(s.done, lastCall) // Totals then knows what was not written
	return flushed
}

func (s *stream) Totals() Totals {
	t := s.totals()
	t.Dropped = s.queue.Dropped() + s.lost.Load()
	return t
}

// Stderr is the sink that writes bytes unchanged to a stream that other
// processes share. A reader that goes away ends the writing: that is no error
// of ours, and later bytes only count as dropped.
type Stderr struct{ stream }

// NewStderr returns a sink that writes to a private duplicate of h. h is
// borrowed for the call. It is never written to itself: on descriptor 1 or 2 a
// broken pipe kills a Go program, on any other it is an error.
func NewStderr(h pipes.Handle, o Options) (*Stderr, error) {
	own, err := pipes.Duplicate(h)
	if err != nil {
		return nil, err
	}
	size := batchSize
	if pipes.NeverBlocks(own) {
		size = fileBatch
	}
	w := &shared{pipes.NewConn(own), own}
	s := &Stderr{}
	s.abort = func() { w.Close() }
	// A redirection to a file on a full disk may find space again later.
	s.start(w, o, size, func(err error) bool { return errors.Is(err, syscall.ENOSPC) })
	return s, nil
}

// shared is a private duplicate of a descriptor that others have too.
type shared struct {
	*pipes.Conn
	own pipes.Handle
}

func (w *shared) Close() error {
	w.Retire(func() { _ = pipes.Close(w.own) })
	return nil
}

// PutLine puts a line of our own between the stray bytes. It stands on a line
// of its own whatever came before it, and with or without an LF at its end.
func (s *Stderr) PutLine(line []byte) {
	s.mu.Lock()
	defer s.mu.Unlock()
	whole := make([]byte, 0, len(line)+2)
	if s.open {
		whole = append(whole, '\n')
	}
	whole = append(whole, line...)
	if !bytes.HasSuffix(line, lineEnd) {
		whole = append(whole, '\n')
	}
	s.open = false
	s.queue.Put(whole)
}

// Write is PutLine, for loggers that write one event at a time.
func (s *Stderr) Write(line []byte) (int, error) {
	s.PutLine(line)
	return len(line), nil
}
