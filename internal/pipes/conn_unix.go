//go:build unix

package pipes

import (
	"errors"
	"os"
	"sync/atomic"

	"golang.org/x/sys/unix"
)

// waker is a pipe whose read end stands beside the handle in every poll; a byte
// that nobody takes out makes all of them return. Closing the write end would
// not, while a process that native code has forked has a copy of it.
type waker struct {
	r, w Handle
	woke atomic.Bool
}

func newWaker() (*waker, error) {
	r, w, err := pipe()
	if err != nil {
		return nil, err
	}
	return &waker{r: r, w: w}, nil
}

// wake runs at most once, under the Conn's lock.
func (w *waker) wake(Handle) {
	w.woke.Store(true)
	_, _ = retry(func() (int, error) { return unix.Write(int(w.w), []byte{0}) })
}

func (w *waker) fired() bool { return w != nil && w.woke.Load() }

func (w *waker) close() {
	_ = closeHandle(w.r)
	_ = closeHandle(w.w)
}

// await waits until h has one of events, or an error that the next call on it
// will tell. It returns os.ErrClosed when the waker fired first or as well: a
// retired Conn must not take another byte off the stream.
func await(h Handle, events int16, w *waker) error {
	if w == nil {
		return pollOne([]unix.PollFd{{Fd: int32(h), Events: events}})
	}
	fds := []unix.PollFd{{Fd: int32(h), Events: events}, {Fd: int32(w.r), Events: unix.POLLIN}}
	if err := pollOne(fds); err != nil {
		return err
	}
	if fds[1].Revents != 0 {
		return os.ErrClosed
	}
	return nil
}

// awaitHandle waits until a read of h would not.
func awaitHandle(h Handle, w *waker) error { return await(h, unix.POLLIN, w) }

func pollOne(fds []unix.PollFd) error {
	_, err := retry(func() (int, error) { return unix.Poll(fds, -1) })
	return os.NewSyscallError("poll", err)
}

func readHandle(h Handle, p []byte, w *waker) (int, error) {
	for {
		if err := await(h, unix.POLLIN, w); err != nil {
			return 0, err
		}
		n, err := unix.Read(int(h), p)
		switch err {
		case nil:
			return n, nil
		case unix.EINTR, unix.EAGAIN:
			// Somebody else made the description non-blocking, or was faster.
		default:
			return 0, os.NewSyscallError("read", err)
		}
	}
}

// writeHandle gives the system all that it takes without waiting, and waits by
// poll where that is nothing.
func writeHandle(h Handle, p []byte, w *waker) (int, error) {
	written := 0
	for written < len(p) {
		if w.fired() {
			return written, os.ErrClosed
		}
		n, err := writeNow(h, p[written:min(len(p), written+maxWrite)])
		written += max(n, 0)
		switch {
		case err == nil, errors.Is(err, unix.EINTR):
		case errors.Is(err, unix.EAGAIN) && !neverBlocks(h):
			if err := await(h, unix.POLLOUT, w); err != nil {
				return written, err
			}
		case errors.Is(err, unix.EAGAIN), errors.Is(err, unix.EOPNOTSUPP), errors.Is(err, unix.ENOSYS), errors.Is(err, unix.EPERM):
			// For a file no poll tells when that would change, and a sandbox
			// may refuse what it doesn't know.
			n, err := writeInPieces(h, p[written:], w)
			return written + n, err
		default:
			return written, os.NewSyscallError("write", err)
		}
	}
	return written, nil
}

// writeInPieces is for systems where a write either waits for all of its bytes
// or is made not to by O_NONBLOCK. POLLOUT promises room for atomicWrite bytes
// and no more: a larger write could block where no waker reaches it.
func writeInPieces(h Handle, p []byte, w *waker) (int, error) {
	limit := atomicWrite
	if neverBlocks(h) {
		limit = maxWrite
	}
	written := 0
	for written < len(p) {
		if err := await(h, unix.POLLOUT, w); err != nil {
			return written, err
		}
		n, err := unix.Write(int(h), p[written:min(len(p), written+limit)])
		written += max(n, 0)
		switch err {
		case nil, unix.EINTR, unix.EAGAIN:
		default:
			return written, os.NewSyscallError("write", err)
		}
	}
	return written, nil
}

// maxWrite keeps one call below the 2 GiB that Linux and macOS take at once.
const maxWrite = 1 << 30

func isGone(err error) bool {
	return errors.Is(err, unix.EPIPE) || errors.Is(err, unix.ECONNRESET)
}
