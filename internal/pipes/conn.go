package pipes

import (
	"io"
	"os"
	"sync"
)

// Conn reads and writes one handle that is shared with other processes. Its
// calls block, but [Conn.Retire] interrupts them, without the O_NONBLOCK that
// would show through to everyone who shares the open file description.
//
// Read and Write may be called from many goroutines; each Write is whole, no
// other Write of the same Conn gets between its bytes. The Conn borrows its
// handle until Retire's callback.
type Conn struct {
	h Handle

	reading, writing sync.Mutex // one call of each kind at a time

	mu      sync.Mutex
	wake    *waker // made by the first call that may have to wait
	users   int    // calls under way
	retired bool
	last    func() // what to do when the last call has left
}

// NewConn returns a Conn for h, which is borrowed. Retire frees what the Conn
// opens for itself.
func NewConn(h Handle) *Conn { return &Conn{h: h} }

// Read reads up to len(p) bytes. It returns io.EOF at the end of the stream
// and os.ErrClosed once the Conn is retired.
func (c *Conn) Read(p []byte) (int, error) {
	c.reading.Lock()
	defer c.reading.Unlock()
	wake, err := c.enter()
	if err != nil {
		return 0, err
	}
	defer c.leave()
	if len(p) == 0 {
		return 0, nil
	}
	n, err := readHandle(c.h, p, wake)
	if err == nil && n == 0 {
		err = io.EOF
	}
	return n, err
}

// Write writes all of p. It returns os.ErrClosed once the Conn is retired,
// and how much of p had been written by then.
func (c *Conn) Write(p []byte) (int, error) {
	c.writing.Lock()
	defer c.writing.Unlock()
	wake, err := c.enter()
	if err != nil {
		return 0, err
	}
	defer c.leave()
	return writeHandle(c.h, p, wake)
}

// Await waits, as Read does, until a Read would not, and reports whether that
// is so now. Windows can't tell: there it returns false at once.
func (c *Conn) Await() bool {
	c.reading.Lock()
	defer c.reading.Unlock()
	wake, err := c.enter()
	if err != nil {
		return false
	}
	defer c.leave()
	return awaitHandle(c.h, wake) == nil
}

// CanSplice reports whether the kernel can move bytes from src to dst, which
// are borrowed.
func CanSplice(src, dst Handle) bool { return canSplice(src, dst) }

// Splice waits, as Read does, until there is something to read, and has the
// kernel move it to dst, at most limit bytes and with lock held. It returns how
// many those were. It never waits for dst: 0 says that Read and a write have to
// do it, and find out why. [CanSplice] must be true of the Conn's handle and
// dst, which is borrowed.
func (c *Conn) Splice(dst Handle, limit int, lock sync.Locker) int {
	c.reading.Lock()
	defer c.reading.Unlock()
	wake, err := c.enter()
	if err != nil {
		return 0
	}
	defer c.leave()
	if awaitHandle(c.h, wake) != nil {
		return 0
	}
	lock.Lock()
	defer lock.Unlock()
	return spliceHandle(c.h, dst, limit)
}

// Retire ends the Conn: calls that wait return os.ErrClosed, new ones too.
// When the last call has left, which is usually at once, last runs, once: the
// handle is then free to be closed. Retire itself never waits. Only the first
// Retire counts; it reports whether it was the one.
func (c *Conn) Retire(last func()) bool {
	c.mu.Lock()
	if c.retired {
		c.mu.Unlock()
		return false
	}
	c.retired = true
	c.last = last
	if c.wake != nil {
		c.wake.wake(c.h)
	}
	idle := c.users == 0
	c.mu.Unlock()
	if idle {
		c.finish()
	}
	return true
}

func (c *Conn) enter() (*waker, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.retired {
		return nil, os.ErrClosed
	}
	if c.wake == nil {
		// Without a waker (no descriptors left) calls work all the same;
		// they only can't be interrupted.
		c.wake, _ = newWaker()
	}
	c.users++
	return c.wake, nil
}

func (c *Conn) leave() {
	c.mu.Lock()
	c.users--
	done := c.retired && c.users == 0
	c.mu.Unlock()
	if done {
		c.finish()
	}
}

// finish runs once: users can't rise again after Retire, so either Retire saw
// zero or the one leave that took it there did.
func (c *Conn) finish() {
	if c.wake != nil {
		c.wake.close()
	}
	if c.last != nil {
		c.last()
	}
}

// IsGone reports whether err says that nobody is at the other end any more.
func IsGone(err error) bool { return isGone(err) }
