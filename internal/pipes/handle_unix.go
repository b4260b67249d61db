//go:build unix

package pipes

import (
	"errors"
	"os"

	"golang.org/x/sys/unix"
)

// firstPrivate is the lowest number a private duplicate may have: a plain dup
// could land in a hole among the standard descriptors.
const firstPrivate = 3

func standard(n int) Handle { return Handle(n) }

func duplicate(h Handle) (Handle, error) {
	fd, err := retry(func() (int, error) {
		return unix.FcntlInt(uintptr(h), unix.F_DUPFD_CLOEXEC, firstPrivate)
	})
	if err != nil {
		return None, os.NewSyscallError("fcntl(F_DUPFD_CLOEXEC)", err)
	}
	return Handle(fd), nil
}

func closeHandle(h Handle) error {
	// No retry on EINTR: Linux and the BSDs have released the number by then.
	if err := unix.Close(int(h)); err != nil && err != unix.EINTR {
		return os.NewSyscallError("close", err)
	}
	return nil
}

func openNull() (Handle, error) {
	fd, err := retry(func() (int, error) {
		return unix.Open(os.DevNull, unix.O_RDWR|unix.O_CLOEXEC, 0)
	})
	if err != nil {
		return None, &os.PathError{Op: "open", Path: os.DevNull, Err: err}
	}
	return abovePrivate(Handle(fd))
}

// abovePrivate moves h, which it owns, out of the standard descriptors: a
// freshly opened file takes the lowest number, which may be a hole there.
func abovePrivate(h Handle) (Handle, error) {
	if h >= firstPrivate {
		return h, nil
	}
	moved, err := duplicate(h)
	_ = closeHandle(h)
	return moved, err
}

func pipe() (r, w Handle, err error) {
	fds, err := pipeCloexec()
	if err != nil {
		return None, None, os.NewSyscallError("pipe", err)
	}
	if r, err = abovePrivate(Handle(fds[0])); err != nil {
		_ = closeHandle(Handle(fds[1]))
		return None, None, err
	}
	if w, err = abovePrivate(Handle(fds[1])); err != nil {
		_ = closeHandle(r)
		return None, None, err
	}
	return r, w, nil
}

func pipeToChild() (theirs, ours Handle, err error) { return pipe() }

func pipeFromChild() (theirs, ours Handle, err error) {
	ours, theirs, err = pipe()
	return theirs, ours, err
}

// Redirect makes descriptor target name the object of from (dup2). Children
// inherit target, as they do every standard descriptor.
func Redirect(from Handle, target int) error {
	_, err := retry(func() (int, error) { return 0, dup2(int(from), target) })
	return os.NewSyscallError("dup2", err)
}

// SetCloseOnExec sets or clears the close-on-exec flag of h, which is borrowed.
func SetCloseOnExec(h Handle, on bool) error {
	flags := 0
	if on {
		flags = unix.FD_CLOEXEC
	}
	_, err := unix.FcntlInt(uintptr(h), unix.F_SETFD, flags)
	return os.NewSyscallError("fcntl(F_SETFD)", err)
}

func isTerminal(h Handle) bool {
	_, err := unix.IoctlGetTermios(int(h), ioctlGetTermios)
	return err == nil
}

func neverBlocks(h Handle) bool {
	var st unix.Stat_t
	return unix.Fstat(int(h), &st) == nil && st.Mode&unix.S_IFMT == unix.S_IFREG || isNull(h)
}

func isNull(h Handle) bool {
	var st, null unix.Stat_t
	return unix.Fstat(int(h), &st) == nil && st.Mode&unix.S_IFMT == unix.S_IFCHR &&
		unix.Stat(os.DevNull, &null) == nil && null.Rdev == st.Rdev
}

// retry repeats a call that a signal interrupted.
func retry[T any](call func() (T, error)) (T, error) {
	for {
		v, err := call()
		if !errors.Is(err, unix.EINTR) {
			return v, err
		}
	}
}

func unread(h Handle) (n int, known bool) {
	n, err := unix.IoctlGetInt(int(h), ioctlUnread)
	return n, err == nil
}
