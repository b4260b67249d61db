package pipes

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"runtime"
	"strings"
	"sync"
	"testing"
)

// ends are both ends of a pipe, which the test may close itself.
type ends struct{ r, w Handle }

func newEnds(t *testing.T) *ends {
	t.Helper()
	r, w, err := Pipe()
	if err != nil {
		t.Fatal(err)
	}
	e := &ends{r, w}
	t.Cleanup(func() { e.closeReader(); e.closeWriter() })
	return e
}

// newConn returns a Conn that is retired at the end of the test.
func newConn(t *testing.T, h Handle) *Conn {
	c := NewConn(h)
	t.Cleanup(func() { c.Retire(nil) })
	return c
}

func (e *ends) closeReader() { closeOnce(&e.r) }
func (e *ends) closeWriter() { closeOnce(&e.w) }

func closeOnce(h *Handle) {
	if *h != None {
		_ = Close(*h)
		*h = None
	}
}

// untilBlocked waits until a goroutine is in function and in a system call.
func untilBlocked(function string) {
	stacks := make([]byte, 1<<20)
	for {
		for _, g := range strings.Split(string(stacks[:runtime.Stack(stacks, true)]), "\n\n") {
			head, _, _ := strings.Cut(g, "\n")
			if strings.Contains(head, "[syscall") && strings.Contains(g, "pipes."+function) {
				return
			}
		}
		runtime.Gosched()
	}
}

// Await takes nothing, and Retire ends it.
func TestAwait(t *testing.T) {
	if runtime.GOOS == "windows" {
		if newConn(t, newEnds(t).r).Await() {
			t.Error("it is said to be known that a read would not wait")
		}
		return
	}
	e := newEnds(t)
	c := newConn(t, e.r)
	got := make(chan bool)
	go func() { got <- c.Await() }()
	untilBlocked("(*Conn).Await")
	if _, err := newConn(t, e.w).Write([]byte("x")); err != nil {
		t.Fatal(err)
	}
	if !<-got {
		t.Error("there is something, and Await has not seen it")
	}
	p := make([]byte, 2)
	if n, err := c.Read(p); n != 1 || p[0] != 'x' {
		t.Errorf("read %q, %v", p[:n], err)
	}
	go func() { got <- c.Await() }()
	untilBlocked("(*Conn).Await")
	c.Retire(nil)
	if <-got {
		t.Error("a Conn that is retired is said to be readable")
	}
}

// gone is a handle that is not open.
const gone = Handle(1 << 20)

func TestConnExchange(t *testing.T) {
	e := newEnds(t)
	reader, writer := newConn(t, e.r), newConn(t, e.w)
	if n, err := writer.Write([]byte("one two")); n != 7 || err != nil {
		t.Fatalf("wrote %d, %v", n, err)
	}
	if n, err := writer.Write(nil); n != 0 || err != nil {
		t.Errorf("an empty write: %d, %v", n, err)
	}
	if n, err := reader.Read(nil); n != 0 || err != nil {
		t.Errorf("an empty read: %d, %v", n, err)
	}
	for _, want := range []string{"one", " tw", "o"} {
		b := make([]byte, 3)
		if n, err := reader.Read(b); string(b[:n]) != want || err != nil {
			t.Errorf("read %q, %v, want %q", b[:n], err, want)
		}
	}
	e.closeWriter()
	for range 2 {
		if n, err := reader.Read(make([]byte, 1)); n != 0 || !errors.Is(err, io.EOF) {
			t.Errorf("at the end: %d, %v", n, err)
		}
	}
}

func TestConnReaderGone(t *testing.T) {
	e := newEnds(t)
	e.closeReader()
	n, err := newConn(t, e.w).Write([]byte("x"))
	if n != 0 || err == nil || errors.Is(err, os.ErrClosed) {
		t.Errorf("wrote %d, %v", n, err)
	}
}

func TestConnNotOpen(t *testing.T) {
	c := newConn(t, gone)
	if n, err := c.Read(make([]byte, 1)); n != 0 || err == nil || errors.Is(err, io.EOF) {
		t.Errorf("read %d, %v", n, err)
	}
	if n, err := c.Write([]byte("x")); n != 0 || err == nil {
		t.Errorf("wrote %d, %v", n, err)
	}
}

func TestRetireIdle(t *testing.T) {
	for _, used := range []bool{false, true} {
		t.Run(fmt.Sprintf("used=%t", used), func(t *testing.T) {
			e := newEnds(t)
			c := newConn(t, e.w)
			if used {
				if _, err := c.Write([]byte("x")); err != nil {
					t.Fatal(err)
				}
			}
			ran := 0
			if !c.Retire(func() { ran++ }) || ran != 1 {
				t.Errorf("the first Retire did not count, or ran its callback %d times", ran)
			}
			if c.Retire(func() { ran++ }) || ran != 1 {
				t.Error("a second Retire counted")
			}
			if n, err := c.Write([]byte("y")); n != 0 || !errors.Is(err, os.ErrClosed) {
				t.Errorf("wrote %d, %v", n, err)
			}
			if n, err := c.Read(make([]byte, 1)); n != 0 || !errors.Is(err, os.ErrClosed) {
				t.Errorf("read %d, %v", n, err)
			}
		})
	}
}

// The callback comes when the last call has left, and closes the handle.
func TestRetireInterruptsThenCallsBack(t *testing.T) {
	const calls = 3
	for name, call := range map[string]func(*Conn) (int, error){
		"readHandle":  func(c *Conn) (int, error) { return c.Read(make([]byte, 1)) },
		"writeHandle": func(c *Conn) (int, error) { return c.Write(make([]byte, 8<<20)) },
	} {
		t.Run(name, func(t *testing.T) {
			e := newEnds(t)
			ours, theirs := &e.r, &e.w
			if name == "writeHandle" {
				ours, theirs = theirs, ours
			}
			c := newConn(t, *ours)
			type result struct {
				n   int
				err error
			}
			results := make(chan result, calls)
			for range calls {
				go func() {
					n, err := call(c)
					results <- result{n, err}
				}()
			}
			untilBlocked(name)
			closed := make(chan error, 2)
			c.Retire(func() { closed <- Close(*ours); *ours = None })
			written := 0
			for range calls {
				r := <-results
				written += r.n
				if !errors.Is(r.err, os.ErrClosed) {
					t.Errorf("%d, %v, want os.ErrClosed", r.n, r.err)
				}
			}
			if err := <-closed; err != nil {
				t.Errorf("the handle was not open any more: %v", err)
			}
			if name == "writeHandle" {
				all, err := io.ReadAll(newConn(t, *theirs))
				if err != nil || len(all) != written {
					t.Errorf("%d bytes arrived, %v; Write told of %d", len(all), err, written)
				}
			}
		})
	}
}

// One of several reads gets what there is; the others are not lost in a read
// that nothing interrupts.
func TestRetireInterruptsReadsThatGotNothing(t *testing.T) {
	const calls = 4
	e := newEnds(t)
	writer := newConn(t, e.w)
	for range 200 {
		c := newConn(t, e.r)
		results := make(chan int, calls)
		for range calls {
			go func() {
				n, err := c.Read(make([]byte, 1))
				if n == 0 && !errors.Is(err, os.ErrClosed) {
					t.Errorf("read %d, %v", n, err)
				}
				results <- n
			}()
		}
		untilBlocked("readHandle")
		if n, err := writer.Write([]byte("x")); n != 1 || err != nil {
			t.Fatalf("wrote %d, %v", n, err)
		}
		total := <-results
		c.Retire(nil)
		for range calls - 1 {
			total += <-results
		}
		if total != 1 {
			t.Errorf("%d bytes were read, want 1", total)
		}
	}
}

// Read and Retire at the same time: whatever comes first, the byte was either
// read or is still there.
func TestRetireAgainstRead(t *testing.T) { retireAgainstRead(t) }

func retireAgainstRead(t *testing.T) {
	e := newEnds(t)
	reader, writer := newConn(t, e.r), newConn(t, e.w)
	for i := range 1000 {
		ours, err := Duplicate(e.r)
		if err != nil {
			t.Fatal(err)
		}
		c := NewConn(ours)
		sent := i%2 == 0
		if sent {
			if _, err := writer.Write([]byte("x")); err != nil {
				t.Fatal(err)
			}
		}
		read := make(chan int)
		go func() {
			n, err := c.Read(make([]byte, 1))
			if n == 0 && !errors.Is(err, os.ErrClosed) {
				t.Errorf("read %d, %v", n, err)
			}
			read <- n
		}()
		if i%3 == 0 {
			runtime.Gosched()
		}
		closed := make(chan struct{})
		c.Retire(func() { _ = Close(ours); close(closed) })
		n := <-read
		<-closed
		if !sent && n > 0 {
			t.Fatal("a byte was read that nobody sent")
		}
		if sent && n == 0 {
			b := make([]byte, 1)
			if n, err := reader.Read(b); n != 1 || err != nil {
				t.Fatalf("the byte is lost: %d, %v", n, err)
			}
		}
	}
}

func TestConnManyWriters(t *testing.T) {
	const writers, lines, length = 10, 5, 10_000
	e := newEnds(t)
	c := newConn(t, e.w)
	var all sync.WaitGroup
	for i := range writers {
		line := append(bytes.Repeat([]byte{'a' + byte(i)}, length-1), '\n')
		all.Go(func() {
			for range lines {
				if n, err := c.Write(line); n != length || err != nil {
					t.Errorf("wrote %d, %v", n, err)
				}
			}
		})
	}
	w := e.w
	e.w = None // closed below
	go func() { all.Wait(); _ = Close(w) }()
	got, err := io.ReadAll(newConn(t, e.r))
	if err != nil {
		t.Fatal(err)
	}
	for i, line := range bytes.SplitAfter(bytes.TrimSuffix(got, []byte("\n")), []byte("\n")) {
		line = bytes.TrimSuffix(line, []byte("\n"))
		if len(line) != length-1 || len(bytes.TrimRight(line, string(line[:1]))) != 0 {
			t.Errorf("line %d of %d bytes is mixed", i, len(line))
		}
	}
	if len(got) != writers*lines*length {
		t.Errorf("%d bytes arrived", len(got))
	}
}
