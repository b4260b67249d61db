//go:build unix

package stray

import (
	"testing"

	"golang.org/x/sys/unix"
)

// Another owner of the pipe has made it non-blocking: nothing is lost, and it
// stays so.
func TestStderrNonBlocking(t *testing.T) {
	r, w := newPipe(t)
	if err := unix.SetNonblock(int(w), true); err != nil {
		t.Fatal(err)
	}
	s, err := NewStderr(w, Options{})
	if err != nil {
		t.Fatal(err)
	}
	in := numbered(500 << 10)
	s.Put("stdout", []byte(in))
	if s.Flush(now) {
		t.Fatal("a pipe took it all")
	}
	out := readAll(t, r)
	if !s.Close(soon(t)) {
		t.Error("not flushed")
	}
	if flags, err := unix.FcntlInt(uintptr(w), unix.F_GETFL, 0); err != nil || flags&unix.O_NONBLOCK == 0 {
		t.Errorf("flags are %#x, %v", flags, err)
	}
	closeAll(t, w)
	if got := <-out; got != in {
		t.Errorf("%d bytes arrived of %d", len(got), len(in))
	}
}
