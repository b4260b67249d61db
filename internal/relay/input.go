package relay

import (
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
	queue   []byte
	ended   bool   // close after what is queued
	muted   bool   // takes no more, but stays open until it is ended
	broken  bool   // nobody reads it any more
	writing bool   // a write to the pipe is under way
	written uint64 // bytes that the pipe has taken
	done    chan struct{}
}

// newInput takes ownership of h.
func newInput(h pipes.Handle) *input {
	in := &input{h: h, conn: pipes.NewConn(h), done: make(chan struct{})}
	in.changed = sync.NewCond(&in.mu)
	go in.run()
	return in
}

func (in *input) run() {
	defer close(in.done)
	defer in.conn.Retire(func() { _ = pipes.Close(in.h) })
	var batch []byte
	for {
		in.mu.Lock()
		for (len(in.queue) == 0 || in.writing) && !in.ended && !in.broken {
			in.changed.Wait()
		}
		if in.broken || len(in.queue) == 0 && !in.writing {
			in.mu.Unlock()
			return
		}
		if in.writing {
			in.changed.Wait()
			in.mu.Unlock()
			continue
		}
		batch, in.queue = in.queue, batch[:0]
		in.writing = true
		in.mu.Unlock()
		if !in.transfer(batch) {
			return
		}
	}
}

// put queues p, which is copied. While there is no room it waits, unless giveUp
// says that the input need not be served.
func (in *input) put(p []byte, giveUp func() bool) {
	const look = 20 * time.Millisecond
	for !in.tryPut(p) {
		// Asked without the lock: it looks at the other input.
		if giveUp() {
			return
		}
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
	if len(in.queue) > 0 && len(in.queue)+len(p) > inputMax {
		return false
	}
	in.queue = append(in.queue, p...)
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
	in.written += uint64(n)
	if err != nil {
		in.broken, in.queue = true, nil
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
	in.muted, in.queue = true, nil
	in.changed.Broadcast()
}

// end closes the input once all that is queued has been written.
func (in *input) end() {
	in.mu.Lock()
	defer in.mu.Unlock()
	in.ended = true
	in.changed.Broadcast()
}

// drained reports whether the server has read all that was written to it, and
// that was not nothing.
func (in *input) drained() bool {
	in.mu.Lock()
	defer in.mu.Unlock()
	if in.written == 0 || len(in.queue) > 0 || in.writing || in.broken {
		return false
	}
	n, known := pipes.Unread(in.h)
	return known && n == 0
}
