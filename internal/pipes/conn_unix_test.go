//go:build unix

package pipes

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"testing"

	"golang.org/x/sys/unix"
)

func newSocketpair(t *testing.T) *ends {
	t.Helper()
	fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM, 0)
	if err != nil {
		t.Fatal(err)
	}
	e := &ends{Handle(fds[0]), Handle(fds[1])}
	t.Cleanup(func() { e.closeReader(); e.closeWriter() })
	return e
}

func nonblocking(t *testing.T, h Handle) bool {
	t.Helper()
	flags, err := unix.FcntlInt(uintptr(h), unix.F_GETFL, 0)
	if err != nil {
		t.Fatal(err)
	}
	return flags&unix.O_NONBLOCK != 0
}

func descriptors(t *testing.T) int {
	t.Helper()
	entries, err := os.ReadDir("/dev/fd")
	if err != nil {
		t.Fatal(err)
	}
	return len(entries)
}

func TestRetiredConnsLeaveNothingOpen(t *testing.T) {
	t.Run("warm up", retireAgainstRead)
	before := descriptors(t)
	t.Run("counted", retireAgainstRead)
	if extra := descriptors(t) - before; extra != 0 {
		t.Errorf("%d descriptors were left open", extra)
	}
}

func TestReaderGoneIsEPIPE(t *testing.T) {
	for name, e := range map[string]*ends{"pipe": newEnds(t), "socketpair": newSocketpair(t)} {
		e.closeReader()
		if n, err := newConn(t, e.w).Write([]byte("x")); n != 0 || !errors.Is(err, unix.EPIPE) {
			t.Errorf("%s: wrote %d, %v", name, n, err)
		}
	}
}

// A Conn never changes O_NONBLOCK, and does not mind when somebody else does.
func TestConnCopesWithNonblocking(t *testing.T) {
	for name, open := range map[string]func(*testing.T) *ends{
		"pipe":       func(t *testing.T) *ends { return newEnds(t) },
		"socketpair": newSocketpair,
	} {
		for _, nonblock := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, nonblocking=%t", name, nonblock), func(t *testing.T) {
				e := open(t)
				for _, h := range []Handle{e.r, e.w} {
					if err := unix.SetNonblock(int(h), nonblock); err != nil {
						t.Fatal(err)
					}
				}
				want := bytes.Repeat([]byte("0123456789"), 100_000)
				got := make([]byte, len(want))
				read := make(chan error)
				go func() { _, err := io.ReadFull(newConn(t, e.r), got); read <- err }()
				untilBlocked("readHandle")
				if n, err := newConn(t, e.w).Write(want); n != len(want) || err != nil {
					t.Errorf("wrote %d, %v", n, err)
				}
				if err := <-read; err != nil || !bytes.Equal(got, want) {
					t.Errorf("read something else, %v", err)
				}
				if nonblocking(t, e.r) != nonblock || nonblocking(t, e.w) != nonblock {
					t.Error("O_NONBLOCK has changed")
				}
			})
		}
	}
}

// A wake and data at the same moment: a retired Conn takes nothing more off the
// stream, and adds nothing to it.
func TestWakeComesFirst(t *testing.T) {
	e := newEnds(t)
	if _, err := newConn(t, e.w).Write([]byte("x")); err != nil {
		t.Fatal(err)
	}
	w, err := newWaker()
	if err != nil {
		t.Fatal(err)
	}
	defer w.close()
	w.wake(e.r)
	b := make([]byte, 2)
	if n, err := readHandle(e.r, b, w); n != 0 || !errors.Is(err, os.ErrClosed) {
		t.Errorf("read %d, %v", n, err)
	}
	if n, err := writeHandle(e.w, b, w); n != 0 || !errors.Is(err, os.ErrClosed) {
		t.Errorf("wrote %d, %v", n, err)
	}
	if n, err := newConn(t, e.r).Read(b); n != 1 || err != nil {
		t.Errorf("%d bytes are in the pipe, %v", n, err)
	}
}

// A process that native code has forked has a copy of the waker's pipe.
func TestWakeDespiteACopy(t *testing.T) {
	e := newEnds(t)
	c := newConn(t, e.r)
	read := make(chan error)
	go func() { _, err := c.Read(make([]byte, 1)); read <- err }()
	untilBlocked("readHandle")
	c.mu.Lock()
	opened(t, func() (Handle, error) { return Duplicate(c.wake.w) })
	c.mu.Unlock()
	c.Retire(nil)
	if err := <-read; !errors.Is(err, os.ErrClosed) {
		t.Errorf("the read ended with %v", err)
	}
}

// Others read and write the same nonblocking pipe, and now and then are faster
// between the poll and the call: writers when it is nearly full, readers when
// it is nearly empty.
func TestConnBesideOthers(t *testing.T) {
	for _, size := range []int{1, atomicWrite} {
		t.Run(fmt.Sprint(size), func(t *testing.T) { besideOthers(t, size) })
	}
}

func besideOthers(t *testing.T, size int) {
	const each, others = 500, 4
	e := newEnds(t)
	for _, h := range []Handle{e.r, e.w} {
		if err := unix.SetNonblock(int(h), true); err != nil {
			t.Fatal(err)
		}
	}
	writing := make(chan error, others)
	reading := make(chan int, others)
	for range others {
		reader, writer := newConn(t, e.r), newConn(t, e.w)
		go func() {
			var failed error
			for range each {
				if n, err := writer.Write(make([]byte, size)); n != size || err != nil {
					failed = fmt.Errorf("wrote %d: %w", n, err)
				}
			}
			writing <- failed
		}()
		go func() {
			all, err := io.ReadAll(reader)
			if err != nil {
				t.Error(err)
			}
			reading <- len(all)
		}()
	}
	for range others {
		if err := <-writing; err != nil {
			t.Error(err)
		}
	}
	e.closeWriter()
	total := 0
	for range others {
		total += <-reading
	}
	if want := others * each * size; total != want {
		t.Errorf("%d bytes arrived, want %d", total, want)
	}
}

func TestRetireInterruptsFullSocket(t *testing.T) {
	e := newSocketpair(t)
	c := newConn(t, e.w)
	type result struct {
		n   int
		err error
	}
	results := make(chan result)
	go func() {
		n, err := c.Write(make([]byte, 8<<20))
		results <- result{n, err}
	}()
	untilBlocked("writeHandle")
	c.Retire(nil)
	r := <-results
	if !errors.Is(r.err, os.ErrClosed) {
		t.Errorf("wrote %d, %v", r.n, r.err)
	}
	e.closeWriter()
	if all, err := io.ReadAll(newConn(t, e.r)); err != nil || len(all) != r.n {
		t.Errorf("%d bytes arrived, %v; Write told of %d", len(all), err, r.n)
	}
}

func TestConnOnRegularFile(t *testing.T) {
	f := tempFile(t)
	c := newConn(t, Handle(f.Fd()))
	want := bytes.Repeat([]byte("x"), 1<<20)
	if n, err := c.Write(want); n != len(want) || err != nil {
		t.Errorf("wrote %d, %v", n, err)
	}
	if _, err := f.Seek(0, io.SeekStart); err != nil {
		t.Fatal(err)
	}
	if got, err := io.ReadAll(c); err != nil || !bytes.Equal(got, want) {
		t.Errorf("read %d bytes, %v", len(got), err)
	}
}

func init() {
	roles["no descriptors left"] = func() error {
		r, w, err := Pipe()
		if err != nil {
			return err
		}
		for err == nil { // until the limit, which play has set, is reached
			var d Handle
			if d, err = Duplicate(r); err != nil && d != None {
				return fmt.Errorf("Duplicate gave %d, %w", d, err)
			}
		}
		if !errors.Is(err, unix.EMFILE) {
			return err
		}
		if h, err := OpenNull(); !errors.Is(err, unix.EMFILE) || h != None {
			return fmt.Errorf("OpenNull gave %d, %w", h, err)
		}
		if r, w, err := Pipe(); !errors.Is(err, unix.EMFILE) || r != None || w != None {
			return fmt.Errorf("Pipe gave %d, %d, %w", r, w, err)
		}
		// Calls work without what would interrupt them.
		reader, writer := NewConn(r), NewConn(w)
		b := make([]byte, 2)
		if n, err := writer.Write([]byte("x")); n != 1 || err != nil {
			return fmt.Errorf("wrote %d, %w", n, err)
		}
		if n, err := reader.Read(b); n != 1 || err != nil {
			return fmt.Errorf("read %d, %w", n, err)
		}
		reader.Retire(nil)
		if n, err := reader.Read(b); n != 0 || !errors.Is(err, os.ErrClosed) {
			return fmt.Errorf("after Retire read %d, %w", n, err)
		}
		return nil
	}
}

func TestNoDescriptorsLeft(t *testing.T) {
	play(t, "no descriptors left", "", func(cmd *exec.Cmd) { cmd.Args[2] = "ulimit -n 50; " + cmd.Args[2] })
}

// Where the system can't write without waiting, pieces are written that do not
// wait either.
func TestWriteInPieces(t *testing.T) {
	e := newEnds(t)
	w, err := newWaker()
	if err != nil {
		t.Fatal(err)
	}
	defer w.close()
	want := bytes.Repeat([]byte("0123456789"), 20_000)
	got := make([]byte, len(want))
	read := make(chan error)
	go func() { _, err := io.ReadFull(newConn(t, e.r), got); read <- err }()
	if n, err := writeInPieces(e.w, want, w); n != len(want) || err != nil {
		t.Errorf("wrote %d, %v", n, err)
	}
	if err := <-read; err != nil || !bytes.Equal(got, want) {
		t.Errorf("read something else, %v", err)
	}
	type result struct {
		n   int
		err error
	}
	full := make(chan result)
	go func() {
		n, err := writeInPieces(e.w, make([]byte, 8<<20), w)
		full <- result{n, err}
	}()
	untilBlocked("writeInPieces")
	w.wake(e.w)
	r := <-full
	if !errors.Is(r.err, os.ErrClosed) {
		t.Errorf("wrote %d, %v", r.n, r.err)
	}
	e.closeWriter()
	if all, err := io.ReadAll(newConn(t, e.r)); err != nil || len(all) != r.n {
		t.Errorf("%d bytes arrived, %v; it told of %d", len(all), err, r.n)
	}
}
