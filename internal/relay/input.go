package relay

import (
	"slices"
	"sync"
	"time"

	"github.com/wireguardrun/wireguardrun/internal/pipes"
)

// inputMax bounds what waits for one of the server's inputs, in bytes.
const inputMax = 8 << 20

// input is one of the server's inputs: a bounded queue, and a goroutine that
// writes what is in it to a pipe.
type input struct {
	h    pipes.Handle // the write end, owned
	conn *pipes.Conn

	mu      sync.Mutex
	changed *sync.Cond
	queue   [][]byte  // each no longer than what is read from the client at once
	queued  int       // bytes in it
	ended   bool      // close after what is queued
	muted   bool      // takes no more, but stays open until it is ended
	broken  bool      // nobody reads it any more
	writing bool      // a write to the pipe is under way
	written uint64    // bytes that the pipe has taken
	since   time.Time // of the first of them

	asked  bool         // what was read is asked about, even once the pipe is closed
	closed bool         // h is closed, or will be in an instant
	peek   pipes.Handle // a reading end that answers then; None if there is none

	done chan struct{}
}

// newInput takes ownership of h.
func newInput(h pipes.Handle) *input {
	in := &input{h: h, conn: pipes.NewConn(h), peek: pipes.None, done: make(chan struct{})}
	in.changed = sync.NewCond(&in.mu)
	go in.run()
	return in
}

func (in *input) run() {
	defer close(in.done)
	defer in.close()
	defer in.keepPeek()
	for {
		in.mu.Lock()
		for !in.broken && (in.writing || len(in.queue) == 0 && !in.ended) {
			in.changed.Wait()
		}
		if in.broken || len(in.queue) == 0 {
			in.mu.Unlock()
			return
		}
		p := in.queue[0]
		in.queue, in.queued = in.queue[1:], in.queued-len(p)
		in.writing = true
		in.mu.Unlock()
		if !in.transfer(p) {
			return
		}
	}
}

// close closes the pipe, and ends a write that is under way.
func (in *input) close() { in.conn.Retire(func() { _ = pipes.Close(in.h) }) }

// keepPeek opens, just before the pipe is closed, what still tells of its bytes.
func (in *input) keepPeek() {
	in.mu.Lock()
	defer in.mu.Unlock()
	in.closed = true
	if in.asked {
		in.peek = pipes.Peek(in.h)
	}
}

// forget is called when nobody will ask any more.
func (in *input) forget() {
	in.mu.Lock()
	defer in.mu.Unlock()
	in.asked = false
	if in.peek != pipes.None {
		_ = pipes.Close(in.peek)
		in.peek = pipes.None
	}
}

// put queues p, which is copied. While there is no room it waits and calls
// full, which may find that the server does not use this input.
func (in *input) put(p []byte, full func()) {
	const look = 20 * time.Millisecond
	for !in.tryPut(p) {
		full() // without the lock: it looks at the other input
		time.Sleep(look)
	}
}

// tryPut reports whether p was queued, or is not wanted.
func (in *input) tryPut(p []byte) bool {
	in.mu.Lock()
	defer in.mu.Unlock()
	if !in.wants() {
		return true
	}
	if in.queued+len(p) > inputMax {
		return false
	}
	in.queue, in.queued = append(in.queue, slices.Clone(p)), in.queued+len(p)
	in.changed.Broadcast()
	return true
}

// write writes p itself, after all that is queued: the way of an input that is
// the only one, where a queue would only cost time. The client waits with it.
func (in *input) write(p []byte) {
	in.mu.Lock()
	for (len(in.queue) > 0 || in.writing) && in.wants() {
		in.changed.Wait()
	}
	if !in.wants() {
		in.mu.Unlock()
		return
	}
	in.writing = true
	in.mu.Unlock()
	in.transfer(p)
}

// transfer writes p to the pipe; writing is set, and reset at the end.
func (in *input) transfer(p []byte) (ok bool) {
	n, err := in.conn.Write(p)
	in.mu.Lock()
	defer in.mu.Unlock()
	in.writing = false
	if in.written == 0 {
		in.since = time.Now()
	}
	in.written += uint64(n)
	if err != nil {
		in.broken, in.queue, in.queued = true, nil, 0
	}
	in.changed.Broadcast()
	return err == nil
}

func (in *input) wants() bool { return !in.muted && !in.broken && !in.ended }

// mute drops what is queued and takes no more: the server does not use this
// input. It stays open, without data, until end.
func (in *input) mute() {
	in.mu.Lock()
	defer in.mu.Unlock()
	in.muted, in.queue, in.queued = true, nil, 0
	in.settle()
}

// end closes the input once all that is queued has been written.
func (in *input) end() {
	in.mu.Lock()
	defer in.mu.Unlock()
	in.ended = true
	in.settle()
}

// settle is called with the lock held when ended or muted has changed. Nobody
// waits for a write to an input that is not used.
func (in *input) settle() {
	if in.ended && in.muted {
		in.close()
	}
	in.changed.Broadcast()
}

// keepsUp reports whether the server reads the input, where the queue of the
// other one is full: the pipe, which holds far less than that, has taken all.
func (in *input) keepsUp() bool {
	in.mu.Lock()
	defer in.mu.Unlock()
	return in.written > 0 && len(in.queue) == 0 && !in.writing && !in.broken
}

// drained reports whether the server has read all that was written to it, and
// that was not nothing. A write that is under way counts: the server may have
// read it before it is over.
func (in *input) drained() bool {
	in.mu.Lock()
	defer in.mu.Unlock()
	if in.written == 0 && !in.writing || len(in.queue) > 0 || in.broken {
		return false
	}
	n, known := in.unread()
	return known && n == 0
}

// touched reports whether somebody has read of the input, and whether that can be
// told.
func (in *input) touched() (read, known bool) {
	in.mu.Lock()
	defer in.mu.Unlock()
	return in.touchedLocked()
}

func (in *input) touchedLocked() (read, known bool) {
	n, known := in.unread()
	return known && uint64(n) < in.written, known
}

// untouched reports whether the server has left something in the pipe.
func (in *input) untouched() bool {
	in.mu.Lock()
	defer in.mu.Unlock()
	n, known := in.unread()
	return len(in.queue) > 0 || known && n > 0
}

// anyRead reports whether the server has read anything of the input, since
// there was something to read.
func (in *input) anyRead() (read bool, since time.Time, known bool) {
	in.mu.Lock()
	defer in.mu.Unlock()
	if in.ended || in.broken || in.written == 0 {
		return false, in.since, false
	}
	read, known = in.touchedLocked()
	return read, in.since, known
}

// unread returns how many bytes the pipe holds, and whether that can be told.
func (in *input) unread() (n int, known bool) {
	h := in.h
	if in.closed {
		h = in.peek
	}
	if h == pipes.None {
		return 0, false
	}
	return pipes.Unread(h)
}
