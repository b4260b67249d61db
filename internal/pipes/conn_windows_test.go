package pipes

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sys/windows"
)

var pipeCount atomic.Int32

// namedPipe makes a named pipe and returns its server end, opened with mode,
// and its client end, opened with flags. name is only a part of the name.
func namedPipe(t *testing.T, name string, mode, flags uint32) (server, client Handle) {
	t.Helper()
	return namedPipeOf(t, name, mode, flags, windows.PIPE_TYPE_BYTE)
}

// namedPipeOf is namedPipe for pipes of bytes or of messages.
func namedPipeOf(t *testing.T, name string, mode, flags, kind uint32) (server, client Handle) {
	t.Helper()
	full := fmt.Sprintf(`\\.\pipe\wireguardrun-test-%d-%d-%s`, os.Getpid(), pipeCount.Add(1), name)
	path, err := windows.UTF16PtrFromString(full)
	if err != nil {
		t.Fatal(err)
	}
	hs, err := windows.CreateNamedPipe(path, mode, kind, 1, 4096, 4096, 0, nil)
	if err != nil {
		t.Fatalf("CreateNamedPipe: %v", err)
	}
	mustClose(t, Handle(hs))
	hc, err := windows.CreateFile(path, windows.GENERIC_READ|windows.GENERIC_WRITE, 0, nil, windows.OPEN_EXISTING, flags, 0)
	if err != nil {
		t.Fatalf("CreateFile: %v", err)
	}
	mustClose(t, Handle(hc))
	return Handle(hs), Handle(hc)
}

// forms are the handles that a client may give its server. Each returns what
// the server gets and the client's end, for both directions.
var forms = map[string]func(t *testing.T) (ours, theirs Handle){
	"synchronous": func(t *testing.T) (Handle, Handle) {
		s, c := namedPipe(t, "s", windows.PIPE_ACCESS_DUPLEX, 0)
		return c, s
	},
	"overlapped": func(t *testing.T) (Handle, Handle) {
		s, c := namedPipe(t, "o", windows.PIPE_ACCESS_DUPLEX, windows.FILE_FLAG_OVERLAPPED)
		return c, s
	},
	// What package os does with an overlapped standard handle.
	"overlapped and bound to the poller": func(t *testing.T) (Handle, Handle) {
		s, c := namedPipe(t, "p", windows.PIPE_ACCESS_DUPLEX, windows.FILE_FLAG_OVERLAPPED)
		f := os.NewFile(uintptr(newDuplicate(t, c)), "bound")
		t.Cleanup(func() { _ = f.Close() })
		return c, s
	},
	"server end": func(t *testing.T) (Handle, Handle) {
		return namedPipe(t, "e", windows.PIPE_ACCESS_DUPLEX|windows.FILE_FLAG_OVERLAPPED, 0)
	},
}

func eachForm(t *testing.T, test func(t *testing.T, ours, theirs Handle)) {
	for name, form := range forms {
		t.Run(name, func(t *testing.T) {
			ours, theirs := form(t)
			test(t, ours, theirs)
		})
	}
}

// rawWrite writes in one call and waits for its end.
func rawWrite(t *testing.T, h Handle, p []byte) {
	t.Helper()
	if n, err := NewConn(h).Write(p); n != len(p) || err != nil {
		t.Errorf("client: wrote %d of %d, %v", n, len(p), err)
	}
}

// timed fails the test when fn doesn't end.
func timed(t *testing.T, what string, fn func()) {
	t.Helper()
	done := make(chan struct{})
	go func() { defer close(done); fn() }()
	select {
	case <-done:
	case <-time.After(timeLeft(t)):
		t.Fatalf("%s does not end", what)
	}
}

func timeLeft(t *testing.T) time.Duration {
	if deadline, ok := t.Deadline(); ok {
		return time.Until(deadline) * 9 / 10
	}
	return time.Minute
}

func TestConnReadsAndWrites(t *testing.T) {
	eachForm(t, func(t *testing.T, ours, theirs Handle) {
		c := NewConn(ours)
		rawWrite(t, theirs, []byte("hello"))
		buf := make([]byte, 3)
		for _, want := range []string{"hel", "lo"} {
			if n, err := c.Read(buf); string(buf[:n]) != want || err != nil {
				t.Errorf("Read gave %q, %v, want %q", buf[:n], err, want)
			}
		}
		timed(t, "an exchange", func() {
			if n, err := c.Write([]byte("answer")); n != 6 || err != nil {
				t.Errorf("Write gave %d, %v", n, err)
			}
			n, err := NewConn(theirs).Read(make([]byte, 99))
			if n != 6 || err != nil {
				t.Errorf("the client read %d, %v", n, err)
			}
		})
	})
}

func TestConnEndOfStream(t *testing.T) {
	eachForm(t, func(t *testing.T, ours, theirs Handle) {
		rawWrite(t, theirs, []byte("last"))
		closeNow(theirs)
		all, err := io.ReadAll(NewConn(ours))
		if string(all) != "last" || err != nil {
			t.Errorf("read %q, %v", all, err)
		}
		_, err = NewConn(ours).Write([]byte("x"))
		if !errors.Is(err, windows.ERROR_NO_DATA) && !errors.Is(err, windows.ERROR_BROKEN_PIPE) && !errors.Is(err, windows.ERROR_PIPE_NOT_CONNECTED) {
			t.Errorf("a write to nobody gave %v", err)
		}
	})
}

func TestConnEndOfAnonymousPipe(t *testing.T) {
	r, w := newPipe(t)
	closeNow(w)
	if n, err := NewConn(r).Read(make([]byte, 9)); n != 0 || err != io.EOF {
		t.Errorf("Read gave %d, %v", n, err)
	}
	r, w = newPipe(t)
	closeNow(r)
	n, err := NewConn(w).Write([]byte("x"))
	if n != 0 || !errors.Is(err, windows.ERROR_NO_DATA) && !errors.Is(err, windows.ERROR_BROKEN_PIPE) {
		t.Errorf("Write gave %d, %v", n, err)
	}
}

func TestConnWritesWhole(t *testing.T) {
	eachForm(t, func(t *testing.T, ours, theirs Handle) {
		want := bytes.Repeat([]byte("0123456789abcde\n"), 1<<16)
		done := make(chan error, 1)
		go func() {
			n, err := NewConn(ours).Write(want)
			if err == nil && n != len(want) {
				err = fmt.Errorf("wrote %d", n)
			}
			done <- err
		}()
		got := make([]byte, len(want))
		timed(t, "the stream", func() {
			n, err := io.ReadFull(NewConn(theirs), got)
			if !bytes.Equal(got, want) || err != nil {
				t.Errorf("the client read %d of %d bytes, %v", n, len(want), err)
			}
		})
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
}

func TestRetireInterruptsRead(t *testing.T) {
	eachForm(t, func(t *testing.T, ours, theirs Handle) {
		c := NewConn(ours)
		reading := make(chan error)
		go func() {
			_, err := c.Read(make([]byte, 9))
			reading <- err
		}()
		underWay(t, c)
		free := make(chan struct{})
		c.Retire(func() { close(free) })
		timed(t, "the read", func() {
			if err := <-reading; !errors.Is(err, os.ErrClosed) {
				t.Errorf("Read gave %v", err)
			}
			<-free
		})
		if _, err := c.Read(make([]byte, 9)); !errors.Is(err, os.ErrClosed) {
			t.Errorf("a later Read gave %v", err)
		}
		// The stream itself is unharmed.
		rawWrite(t, theirs, []byte("next"))
		buf := make([]byte, 9)
		if n, err := NewConn(ours).Read(buf); string(buf[:n]) != "next" || err != nil {
			t.Errorf("the next owner read %q, %v", buf[:n], err)
		}
	})
}

// underWay waits until a call of c has been registered with its waker.
func underWay(t *testing.T, c *Conn) {
	t.Helper()
	timed(t, "the start of a call", func() {
		for {
			c.mu.Lock()
			w := c.wake
			c.mu.Unlock()
			if w != nil {
				w.mu.Lock()
				n := len(w.calls)
				w.mu.Unlock()
				if n > 0 {
					return
				}
			}
			time.Sleep(time.Millisecond)
		}
	})
}

func TestRetireInterruptsWrite(t *testing.T) {
	eachForm(t, func(t *testing.T, ours, theirs Handle) {
		c := NewConn(ours)
		writing := make(chan error)
		go func() {
			_, err := c.Write(make([]byte, 1<<20)) // nobody reads
			writing <- err
		}()
		underWay(t, c)
		c.Retire(nil)
		timed(t, "the write", func() {
			if err := <-writing; !errors.Is(err, os.ErrClosed) {
				t.Errorf("Write gave %v", err)
			}
		})
	})
}

// One object may carry both directions.
func TestRetireOfReadLeavesWriteAlone(t *testing.T) {
	ours, theirs := forms["overlapped"](t)
	reader, writer := NewConn(ours), NewConn(newDuplicate(t, ours))
	reading, writing := make(chan error, 1), make(chan error, 1)
	go func() {
		_, err := reader.Read(make([]byte, 9))
		reading <- err
	}()
	want := bytes.Repeat([]byte("whole"), 1<<14)
	go func() {
		_, err := writer.Write(want)
		writing <- err
	}()
	underWay(t, reader)
	underWay(t, writer)
	reader.Retire(nil)
	timed(t, "the read", func() { <-reading })
	got := make([]byte, len(want))
	timed(t, "the write", func() {
		if _, err := io.ReadFull(NewConn(theirs), got); err != nil || !bytes.Equal(got, want) {
			t.Errorf("the client did not read what was written, %v", err)
		}
		if err := <-writing; err != nil {
			t.Error(err)
		}
	})
}

// A wake may come between the decision to read and the system's start on it.
func TestRetireAtAnyMoment(t *testing.T) {
	eachForm(t, func(t *testing.T, ours, theirs Handle) {
		for i := range 50 {
			c := NewConn(ours)
			started := make(chan struct{})
			reading := make(chan error, 1)
			go func() {
				close(started)
				_, err := c.Read(make([]byte, 9))
				reading <- err
			}()
			<-started
			for range i * 10 { // not a time, only different moments
				_ = open(ours)
			}
			c.Retire(nil)
			timed(t, "the read", func() {
				if err := <-reading; !errors.Is(err, os.ErrClosed) {
					t.Errorf("Read gave %v", err)
				}
			})
		}
	})
}

// Whatever a Conn has taken off the stream it also returns.
func TestRetireLosesNothing(t *testing.T) {
	eachForm(t, func(t *testing.T, ours, theirs Handle) {
		const total = 3000
		go func() {
			defer closeNow(theirs)
			c := NewConn(theirs)
			for i := range total {
				if _, err := c.Write([]byte{byte(i)}); err != nil {
					return
				}
			}
		}()
		next := 0
		read := func(c *Conn) error {
			buf := make([]byte, 7)
			n, err := c.Read(buf)
			for _, b := range buf[:n] {
				if b != byte(next) {
					return fmt.Errorf("byte %d is %d", next, b)
				}
				next++
			}
			return err
		}
		timed(t, "the stream", func() {
			for err := error(nil); err != io.EOF; {
				c := NewConn(ours)
				time.AfterFunc(time.Duration(next%5)*100*time.Microsecond, func() { c.Retire(nil) })
				for err = nil; err == nil; {
					err = read(c)
				}
				if err != io.EOF && !errors.Is(err, os.ErrClosed) {
					t.Error(err)
					return
				}
			}
		})
		if next != total {
			t.Errorf("read %d bytes of %d", next, total)
		}
	})
}

func TestMessagesAreAStream(t *testing.T) {
	for name, flags := range map[string]uint32{"synchronous": 0, "overlapped": windows.FILE_FLAG_OVERLAPPED} {
		t.Run(name, func(t *testing.T) {
			server, client := namedPipeOf(t, "m", windows.PIPE_ACCESS_DUPLEX|windows.FILE_FLAG_OVERLAPPED, flags,
				windows.PIPE_TYPE_MESSAGE)
			mode := uint32(windows.PIPE_READMODE_MESSAGE)
			if err := windows.SetNamedPipeHandleState(windows.Handle(client), &mode, nil, nil); err != nil {
				t.Fatal(err)
			}
			rawWrite(t, server, []byte("long message"))
			emptyMessage(t, server)
			rawWrite(t, server, []byte("!"))
			c := NewConn(client)
			buf := make([]byte, 5)
			for _, want := range []string{"long ", "messa", "ge", "!"} {
				if n, err := c.Read(buf); string(buf[:n]) != want || err != nil {
					t.Errorf("Read gave %q, %v, want %q", buf[:n], err, want)
				}
			}
		})
	}
}

// emptyMessage is what Conn.Write never does.
func emptyMessage(t *testing.T, h Handle) {
	t.Helper()
	event, err := windows.CreateEvent(nil, 1, 0, nil)
	if err != nil {
		t.Fatal(err)
	}
	mustClose(t, Handle(event))
	o := &windows.Overlapped{HEvent: event}
	var n uint32
	err = windows.WriteFile(windows.Handle(h), nil, &n, o)
	if err == windows.ERROR_IO_PENDING {
		err = windows.GetOverlappedResult(windows.Handle(h), o, &n, true)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// Somebody else may have made the pipe non-blocking.
func TestNonBlockingPipe(t *testing.T) {
	server, client := namedPipe(t, "n", windows.PIPE_ACCESS_DUPLEX|windows.FILE_FLAG_OVERLAPPED, 0)
	mode := uint32(windows.PIPE_NOWAIT)
	if err := windows.SetNamedPipeHandleState(windows.Handle(client), &mode, nil, nil); err != nil {
		t.Fatal(err)
	}
	c := NewConn(client)
	got := make(chan string)
	go func() {
		buf := make([]byte, 9)
		n, err := c.Read(buf)
		got <- fmt.Sprintf("%s %v", buf[:n], err)
	}()
	underWay(t, c)
	rawWrite(t, server, []byte("late"))
	timed(t, "the read", func() {
		if got := <-got; got != "late <nil>" {
			t.Errorf("Read gave %s", got)
		}
	})
}

func TestConnOnFile(t *testing.T) {
	h, path := newFile(t, "in the file")
	c := NewConn(h)
	all, err := io.ReadAll(c)
	if string(all) != "in the file" || err != nil {
		t.Errorf("read %q, %v", all, err)
	}
	if n, err := c.Write([]byte(", and more")); n != 10 || err != nil {
		t.Errorf("Write gave %d, %v", n, err)
	}
	got, err := os.ReadFile(path)
	if want := "in the file, and more"; string(got) != want || err != nil {
		t.Errorf("the file holds %q, %v, want %q", got, err, want)
	}
}

func TestConnOnClosedHandle(t *testing.T) {
	c := NewConn(closedHandle(t))
	if n, err := c.Read(make([]byte, 9)); n != 0 || !errors.Is(err, windows.ERROR_INVALID_HANDLE) {
		t.Errorf("Read gave %d, %v", n, err)
	}
	if n, err := c.Write([]byte("x")); n != 0 || !errors.Is(err, windows.ERROR_INVALID_HANDLE) {
		t.Errorf("Write gave %d, %v", n, err)
	}
}
