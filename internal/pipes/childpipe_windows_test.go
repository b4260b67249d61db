package pipes

import (
	"bytes"
	"errors"
	"io"
	"os"
	"testing"
	"time"
	"unsafe"

	"golang.org/x/sys/windows"
)

// childPipes are both kinds, each with its reading and its writing end.
func childPipes(t *testing.T, test func(t *testing.T, r, w, ours, theirs Handle)) {
	for name, open := range map[string]func() (theirs, ours Handle, err error){
		"to child": PipeToChild, "from child": PipeFromChild,
	} {
		t.Run(name, func(t *testing.T) {
			theirs, ours, err := open()
			if err != nil {
				t.Fatal(err)
			}
			mustClose(t, theirs, ours)
			if name == "to child" {
				test(t, theirs, ours, ours, theirs)
			} else {
				test(t, ours, theirs, ours, theirs)
			}
		})
	}
}

// isSynchronous asks for FileModeInformation.
func isSynchronous(t *testing.T, h Handle) bool {
	t.Helper()
	const fileModeInformation, synchronousAlert, synchronousNonAlert = 16, 0x10, 0x20
	var mode uint32
	if err := queryFile(h, fileModeInformation, unsafe.Pointer(&mode), unsafe.Sizeof(mode)); err != nil {
		t.Fatal(err)
	}
	return mode&(synchronousAlert|synchronousNonAlert) != 0
}

func TestChildPipeEnds(t *testing.T) {
	childPipes(t, func(t *testing.T, r, w, ours, theirs Handle) {
		if isSynchronous(t, ours) || !isSynchronous(t, theirs) {
			t.Errorf("synchronous: ours %v, theirs %v", isSynchronous(t, ours), isSynchronous(t, theirs))
		}
		if inherited(t, ours) || inherited(t, theirs) {
			t.Error("children inherit an end")
		}
		// A child may ask its end what it is and set its mode, as runtimes do.
		var state uint32
		if err := windows.GetNamedPipeHandleState(windows.Handle(theirs), &state, nil, nil, nil, nil, 0); err != nil {
			t.Errorf("GetNamedPipeHandleState: %v", err)
		}
	})
}

func TestChildPipeCarries(t *testing.T) {
	childPipes(t, func(t *testing.T, r, w, _, _ Handle) {
		want := bytes.Repeat([]byte("0123456789abcde\n"), 1<<15)
		go func() {
			if n, err := NewConn(w).Write(want); n != len(want) || err != nil {
				t.Errorf("wrote %d, %v", n, err)
			}
			closeNow(w)
		}()
		timed(t, "the stream", func() {
			got, err := io.ReadAll(NewConn(r))
			if !bytes.Equal(got, want) || err != nil {
				t.Errorf("read %d of %d bytes, %v", len(got), len(want), err)
			}
		})
	})
}

func TestChildPipeWithoutReader(t *testing.T) {
	childPipes(t, func(t *testing.T, r, w, _, _ Handle) {
		closeNow(r)
		if _, err := NewConn(w).Write([]byte("x")); !IsGone(err) {
			t.Errorf("Write gave %v", err)
		}
	})
}

// The other end may have a call of its own under way.
func TestChildPipeRetire(t *testing.T) {
	childPipes(t, func(t *testing.T, r, w, ours, theirs Handle) {
		c, child := NewConn(ours), NewConn(theirs)
		calls := func(c *Conn, h Handle) <-chan error {
			done := make(chan error, 1)
			go func() {
				var err error
				if h == r {
					_, err = c.Read(make([]byte, 9))
				} else {
					_, err = c.Write(make([]byte, 1<<20))
				}
				done <- err
			}()
			underWay(t, c)
			return done
		}
		if ours == w { // a reader would empty what is written
			done := calls(c, ours)
			c.Retire(nil)
			timed(t, "the write", func() {
				if err := <-done; !errors.Is(err, os.ErrClosed) {
					t.Errorf("Write gave %v", err)
				}
			})
			return
		}
		done := calls(c, ours)
		c.Retire(func() { closeNow(ours) })
		timed(t, "the read", func() {
			if err := <-done; !errors.Is(err, os.ErrClosed) {
				t.Errorf("Read gave %v", err)
			}
		})
		if _, err := child.Write([]byte("x")); !IsGone(err) {
			t.Errorf("the child's write gave %v", err)
		}
	})
}

func TestSevered(t *testing.T) {
	theirs, ours, err := PipeFromChild()
	if err != nil {
		t.Fatal(err)
	}
	mustClose(t, theirs, ours)
	r, w := newPipe(t)
	r2, w2 := newPipe(t)
	for name, ends := range map[string]struct{ look, other Handle }{
		"from child": {ours, theirs}, "reader": {r, w}, "writer": {w2, r2},
	} {
		if severed, known := Severed(ends.look); severed || !known {
			t.Errorf("%s, whole: severed %v, known %v", name, severed, known)
		}
		closeNow(ends.other)
		if severed, known := Severed(ends.look); !severed || !known {
			t.Errorf("%s, without the other end: severed %v, known %v", name, severed, known)
		}
	}
	if severed, known := Severed(newNull(t)); severed || known {
		t.Errorf("the null device: severed %v, known %v", severed, known)
	}
}

func TestUnread(t *testing.T) {
	r, w := newPipe(t)
	theirs, ours, err := PipeToChild()
	if err != nil {
		t.Fatal(err)
	}
	mustClose(t, theirs, ours)
	duplexOurs, duplexTheirs := namedPipe(t, "u", windows.PIPE_ACCESS_DUPLEX|windows.FILE_FLAG_OVERLAPPED, 0)
	for name, ends := range map[string]struct{ w, r Handle }{
		"pipe": {w, r}, "to child": {ours, theirs}, "both ways": {duplexOurs, duplexTheirs},
	} {
		want := func(want int) {
			t.Helper()
			timed(t, "the answer", func() {
				n, known := Unread(ends.r)
				for !known { // it took long
					n, known = Unread(ends.r)
				}
				if n != want {
					t.Errorf("%s: %d, want %d", name, n, want)
				}
			})
		}
		want(0)
		rawWrite(t, ends.w, []byte("text"))
		want(4)
		if n, known := Unread(ends.w); n != 0 || known {
			t.Errorf("%s, at the writing end: %d, %v", name, n, known)
		}
		closeNow(ends.w)
		want(4)
		if _, err := NewConn(ends.r).Read(make([]byte, 9)); err != nil {
			t.Fatal(err)
		}
		want(0)
	}
	if n, known := Unread(newNull(t)); n != 0 || known {
		t.Errorf("the null device: %d, %v", n, known)
	}
}

// A question that has to wait gets no answer, and neither does another one
// until it has its own.
func TestSoon(t *testing.T) {
	h := newNull(t)
	release, left := make(chan struct{}), make(chan struct{})
	waits := func() int {
		defer close(left)
		<-release
		return 1
	}
	if got := Soon(h, time.Millisecond, waits); got != 0 {
		t.Errorf("a question that waits got %d", got)
	}
	if got := Soon(h, time.Minute, func() int { return 2 }); got != 0 {
		t.Errorf("a question beside one that waits got %d", got)
	}
	close(release)
	<-left
	timed(t, "the way back", func() {
		for Soon(h, time.Minute, func() int { return 3 }) != 3 {
			time.Sleep(time.Millisecond)
		}
	})
	for n := range 1000 {
		if got := Soon(h, time.Minute, func() int { return n }); got != n {
			t.Fatalf("the question after another got %d, want %d", got, n)
		}
	}
}

// Systems that give the pipes of CreatePipe no name must not stop a start.
func TestNamelessPipe(t *testing.T) {
	r, w := newPipe(t)
	for _, h := range []Handle{r, w} {
		if id, err := namelessPipe(h); id == "" || err != nil {
			t.Errorf("%q, %v", id, err)
		}
	}
}
