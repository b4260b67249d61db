package pipes

import (
	"errors"
	"io"
	"os"
	"runtime"
	"sync"
	"time"

	"golang.org/x/sys/windows"
)

// waker lets a Conn out of calls that the system has under way. The handle is
// somebody else's, synchronous or overlapped; every call is given an
// OVERLAPPED of its own, by which it can be canceled in both cases.
type waker struct {
	mu    sync.Mutex
	woken chan struct{}      // closed by wake
	calls map[*call]struct{} // under way

	once    sync.Once
	is      kind     // of the one handle that this waker is for
	console *os.File // owns a duplicate of the handle if that is a console
}

// call is one ReadFile or WriteFile.
type call struct {
	overlapped windows.Overlapped
	pinned     runtime.Pinner // the memory that the system has been given
}

func newWaker() (*waker, error) {
	return &waker{woken: make(chan struct{}), calls: map[*call]struct{}{}}, nil
}

func (w *waker) fired() bool {
	select {
	case <-w.woken:
		return true
	default:
		return false
	}
}

// wake runs at most once, under the Conn's lock.
func (w *waker) wake(h Handle) {
	w.mu.Lock()
	defer w.mu.Unlock()
	close(w.woken)
	if len(w.calls) > 0 {
		go w.cancelAll(h)
	}
}

const (
	firstCancelPause = time.Millisecond
	lastCancelPause  = 128 * time.Millisecond
	// From this pause on everything of this process on the object is
	// canceled, should there be an object that doesn't go by OVERLAPPED.
	bluntCancelPause = 16 * time.Millisecond
)

// cancelAll cancels until the calls have returned: a call that is registered
// but has not reached the system yet is not canceled by anything.
func (w *waker) cancelAll(h Handle) {
	for pause := firstCancelPause; w.cancel(h, pause >= bluntCancelPause); pause = min(2*pause, lastCancelPause) {
		time.Sleep(pause)
	}
}

// cancel holds the lock while it uses h, which is closed only after the calls
// have ended.
func (w *waker) cancel(h Handle, blunt bool) (again bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for c := range w.calls {
		overlapped := &c.overlapped
		if blunt || w.console != nil {
			overlapped = nil
		}
		_ = windows.CancelIoEx(windows.Handle(h), overlapped)
	}
	return len(w.calls) > 0
}

// pause waits a little for what can't be waited for, or for wake.
func (w *waker) pause() {
	select {
	case <-w.woken:
	case <-time.After(10 * time.Millisecond):
	}
}

// close runs after the last call has ended.
func (w *waker) close() {
	if w.console != nil {
		_ = w.console.Close()
	}
}

// kind is asked before a call of ours is under way on h: on a synchronous
// handle the question would wait for it.
func (w *waker) kind(h Handle) kind {
	w.once.Do(func() {
		w.is, _ = kindOf(h) // else the first read or write will tell
		if w.is != kindConsole {
			return
		}
		if d, err := duplicate(h); err == nil {
			w.console = os.NewFile(uintptr(d), "console")
		}
	})
	return w.is
}

func (w *waker) begin(c *call) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.fired() {
		return os.ErrClosed
	}
	w.calls[c] = struct{}{}
	return nil
}

func (w *waker) end(c *call) {
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.calls, c)
}

// read returns the system's error as it is.
func (w *waker) read(h Handle, p []byte) (int, error) {
	return w.transfer(h, p, windows.ReadFile, (*os.File).Read)
}

// write is like read. A pipe may have taken some of p even if it was canceled.
func (w *waker) write(h Handle, p []byte) (int, error) {
	return w.transfer(h, p, windows.WriteFile, (*os.File).Write)
}

type (
	fileCall    func(windows.Handle, []byte, *uint32, *windows.Overlapped) error
	consoleCall func(*os.File, []byte) (int, error)
)

func (w *waker) transfer(h Handle, p []byte, raw fileCall, text consoleCall) (int, error) {
	k := w.kind(h)
	c := &call{}
	if err := w.begin(c); err != nil {
		return 0, err
	}
	defer w.end(c)
	switch {
	case w.console != nil:
		// A console has characters, not bytes; package os translates.
		return consoleResult(text(w.console, p))
	case k == kindDisk || k == kindNull:
		// These never wait, and an OVERLAPPED would bring its own position.
		var n uint32
		err := raw(windows.Handle(h), p, &n, nil)
		return int(n), err
	default:
		return c.run(h, p, raw)
	}
}

// run performs the call and waits for its end.
func (c *call) run(h Handle, p []byte, raw fileCall) (int, error) {
	event, err := windows.CreateEvent(nil, 1, 0, nil)
	if err != nil {
		return 0, os.NewSyscallError("CreateEvent", err)
	}
	defer func() { _ = windows.CloseHandle(event) }()
	// The low bit keeps the completion from a port that the object may be
	// bound to: package os does that to an overlapped standard handle.
	c.overlapped.HEvent = event | 1
	c.pinned.Pin(&c.overlapped)
	c.pinned.Pin(&p[0])
	defer c.pinned.Unpin()

	var n uint32
	err = raw(windows.Handle(h), p, &n, &c.overlapped)
	if err == windows.ERROR_IO_PENDING {
		err = windows.GetOverlappedResult(windows.Handle(h), &c.overlapped, &n, true)
	}
	// The count of a call that ended with an error is here alone.
	return int(c.overlapped.InternalHigh), err
}

// consoleResult makes of the errors of package os those of the system.
func consoleResult(n int, err error) (int, error) {
	var errno windows.Errno
	switch {
	case err == io.EOF:
		return n, nil
	case errors.As(err, &errno):
		return n, errno
	default:
		return n, err
	}
}
