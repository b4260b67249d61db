package pipes

// Handle names an open object of this process: a file descriptor on Unix, a
// HANDLE on Windows.
type Handle uintptr

// None is no handle at all.
const None = ^Handle(0)

// Standard returns the handle that is standard input, output or error (n is 0,
// 1 or 2) now, or None when there is none (Windows). It is borrowed.
func Standard(n int) Handle { return standard(n) }

// Duplicate returns a private duplicate of h that children do not inherit and
// that is never one of the standard descriptors, even when those are closed.
// The caller owns the duplicate; h is borrowed.
func Duplicate(h Handle) (Handle, error) { return duplicate(h) }

// Close closes h, which the caller owns. The handle is gone afterwards even
// when an error is returned, unless the system says that it never was open;
// closing again could hit a stranger that was given the same number.
func Close(h Handle) error { return closeHandle(h) }

// OpenNull opens the null device for reading and writing. Children do not
// inherit the handle, which the caller owns.
func OpenNull() (Handle, error) { return openNull() }

// Pipe returns both ends of a new pipe. Children do not inherit them, both
// block, and the caller owns both.
func Pipe() (r, w Handle, err error) { return pipe() }

// PipeToChild is Pipe for a child's input: theirs is the end to read, ours the
// end to write. On Windows it has a name that nobody can guess, by which it is
// told from others (see Identify), and ours is overlapped: no question about
// it ever waits, while theirs is the usual end that any program can use.
func PipeToChild() (theirs, ours Handle, err error) { return pipeToChild() }

// PipeFromChild is PipeToChild for a child's output: theirs is the end to
// write, ours the end to read.
func PipeFromChild() (theirs, ours Handle, err error) { return pipeFromChild() }

// IsTerminal reports whether h, which is borrowed, is a terminal or console.
func IsTerminal(h Handle) bool { return isTerminal(h) }

// NeverBlocks reports whether writes to h, which is borrowed, end without the
// help of another process: true for regular files and the null device.
func NeverBlocks(h Handle) bool { return neverBlocks(h) }

// Unread returns how many bytes wait in the pipe or socket h, which is borrowed,
// and whether that could be told.
func Unread(h Handle) (n int, known bool) { return unread(h) }

// Peek opens a reading end of the pipe that h, which is borrowed, writes to, for
// Unread to be asked of once h is closed. It is the caller's. The result is None
// where the system can't: only Linux can.
func Peek(h Handle) Handle { return peek(h) }

// IsNull reports whether h, which is borrowed, is the null device.
func IsNull(h Handle) bool { return isNull(h) }

// Grow asks the system for a pipe buffer of size bytes behind h, which is
// borrowed. Most systems have a size of their own, and then nothing happens.
func Grow(h Handle, size int) { grow(h, size) }
