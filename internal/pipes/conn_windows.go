package pipes

import (
	"errors"
	"os"

	"golang.org/x/sys/windows"
)

// awaitHandle can't be had: here a wait is a read, which takes bytes.
func awaitHandle(Handle, *waker) error { return errors.ErrUnsupported }

func readHandle(h Handle, p []byte, w *waker) (int, error) {
	for {
		n, err := w.read(h, p)
		if n > 0 {
			// ERROR_MORE_DATA, the rest of a long message, comes with the
			// next call; and what was read before a wake is not given back.
			return n, nil
		}
		switch err {
		case nil:
			if w.kind(h) != kindPipe {
				return 0, nil
			}
			// Somebody wrote nothing: no end of the stream.
		case windows.ERROR_BROKEN_PIPE, windows.ERROR_PIPE_NOT_CONNECTED, windows.ERROR_HANDLE_EOF:
			return 0, nil
		case windows.ERROR_OPERATION_ABORTED:
			// A wake, which the next call finds out, or somebody else in
			// this process canceled all that was under way on the object.
		case windows.ERROR_NO_DATA:
			// A pipe that somebody made non-blocking (PIPE_NOWAIT).
			w.pause()
		default:
			if w.fired() { // however an object tells of it
				return 0, os.ErrClosed
			}
			return 0, systemError("ReadFile", err)
		}
	}
}

// maxWrite keeps the length of one call within 32 bits.
const maxWrite = 1 << 30

// writeHandle gives the system as much as it takes in one piece: a pipe takes
// all of it or waits, and other processes' writes can't get in between.
func writeHandle(h Handle, p []byte, w *waker) (int, error) {
	written := 0
	for written < len(p) {
		n, err := w.write(h, p[written:min(len(p), written+maxWrite)])
		written += n
		switch {
		case err != nil && w.fired():
			return written, os.ErrClosed
		case err != nil:
			return written, systemError("WriteFile", err)
		case n == 0:
			// A full pipe that somebody made non-blocking (PIPE_NOWAIT).
			w.pause()
		}
	}
	return written, nil
}

// systemError leaves errors that say where they come from as they are.
func systemError(call string, err error) error {
	if errno, ok := err.(windows.Errno); ok {
		return os.NewSyscallError(call, errno)
	}
	return err
}

func isGone(err error) bool {
	return errors.Is(err, windows.ERROR_NO_DATA) || errors.Is(err, windows.ERROR_BROKEN_PIPE) ||
		errors.Is(err, windows.ERROR_PIPE_NOT_CONNECTED)
}
