package stray

import (
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/wireguardrun/wireguardrun/internal/pipes"
)

func TestStderrUnchanged(t *testing.T) {
	r, w := newPipe(t)
	s, err := NewStderr(w, Options{})
	if err != nil {
		t.Fatal(err)
	}
	out := readAll(t, r)
	in := "plain\r\n\x1b[31mred\x00\xff\n" + numbered(300<<10) + "no end"
	s.Put("stdout", []byte(in[:100]))
	s.Put("stdout", nil)
	s.Put("stderr", []byte(in[100:]))
	if !s.Flush(soon(t)) || !s.Close(soon(t)) {
		t.Error("not flushed")
	}
	s.Put("stdout", []byte("late\n"))
	s.PutLine([]byte("late, ours"))
	closeAll(t, w)
	if got := <-out; got != in { // ends only if the sink has closed its duplicate
		t.Errorf("%d bytes arrived changed, of %d", len(got), len(in))
	}
	got := s.Totals()
	want := Count{Bytes: 105, Lines: uint64(strings.Count(in[:100], "\n")) + 1}
	if got.Sources["stdout"] != want || got.Sources["stderr"].Bytes != uint64(len(in)-100) {
		t.Errorf("counted %+v", got.Sources)
	}
	if got.Dropped != uint64(len("late\nlate, ours\n")) {
		t.Errorf("dropped %d, want what came late", got.Dropped)
	}
}

// A line of our own stands alone, whatever the sources write at the time.
func TestStderrPutLine(t *testing.T) {
	r, w := newPipe(t)
	s, err := NewStderr(w, Options{})
	if err != nil {
		t.Fatal(err)
	}
	out := readAll(t, r)
	s.PutLine([]byte("first"))
	s.PutLine([]byte("second\n"))
	s.Put("stdout", []byte("half"))
	fmt.Fprintln(s, "third")
	s.PutLine([]byte("fourth"))
	s.Put("stdout", []byte("whole\n"))
	s.PutLine([]byte("fifth"))
	var wg sync.WaitGroup
	for _, source := range []string{"stdout", "stderr"} {
		wg.Go(func() {
			for _, word := range strings.SplitAfter(numbered(20<<10), " ") {
				s.Put(source, []byte(word))
			}
		})
	}
	const lines = 500
	for i := range lines {
		s.PutLine(fmt.Appendf(nil, "ours %d", i))
	}
	wg.Wait()
	if !s.Close(soon(t)) {
		t.Error("not flushed")
	}
	closeAll(t, w)
	got := <-out
	if start := "first\nsecond\nhalf\nthird\nfourth\nwhole\nfifth\n"; !strings.HasPrefix(got, start) {
		t.Errorf("got %q, want it to start with %q", got[:min(len(got), 60)], start)
	}
	next := 0
	for line := range strings.Lines(got) {
		if line == fmt.Sprintf("ours %d\n", next) {
			next++
		}
	}
	if next != lines {
		t.Errorf("%d of %d lines stand alone and in order", next, lines)
	}
}

// A reader that stalls never makes Put, Flush or Close hang, and each byte is
// either in the pipe or counted, also those of the write that was interrupted.
func TestStderrStalledReader(t *testing.T) {
	r, w := newPipe(t)
	in := numbered(3 << 20)
	s, err := NewStderr(w, Options{Capacity: len(in)}) // so that no gap is mended
	if err != nil {
		t.Fatal(err)
	}
	s.Put("stdout", []byte(in))
	if n, err := pipes.NewConn(r).Read(make([]byte, 1)); n != 1 {
		t.Fatal("the writer has not begun: ", err)
	}
	if s.Flush(now) {
		t.Error("Flush says that all is written")
	}
	if s.Close(now) {
		t.Error("Close says that all is written")
	}
	if !closesWithin(s.done, lastCall) {
		t.Fatal("the write was not interrupted")
	}
	closeAll(t, w)
	got := 1 + len(<-readAll(t, r))
	if sum := uint64(got) + s.Totals().Dropped; sum != uint64(len(in)) {
		t.Errorf("%d bytes arrived, %d dropped, %d went in", got, s.Totals().Dropped, len(in))
	}
}

// When the reader comes back, it gets what is newest, from a line start, with
// a note in place of what is missing.
func TestStderrReaderRecovers(t *testing.T) {
	for _, note := range []string{"", "(%d bytes dropped)\n"} {
		r, w := newPipe(t)
		o := Options{Capacity: 100 << 10}
		if note != "" {
			o.Gap = func(n uint64) []byte { return fmt.Appendf(nil, note, n) }
		}
		s, err := NewStderr(w, o)
		if err != nil {
			t.Fatal(err)
		}
		const first = 80 << 10 // more than a pipe takes: the writer will wait
		in := strings.Repeat("x", first) + "\n" + numbered(1<<20)
		s.Put("stdout", []byte(in[:first]))
		if s.Flush(now) {
			t.Fatal("a pipe took it all")
		}
		s.Put("stdout", []byte(in[first:]))
		out := readAll(t, r)
		if !s.Close(soon(t)) {
			t.Error("not flushed")
		}
		closeAll(t, w)
		got := <-out

		// Dropped is what the writer had not taken by the second Put: it has
		// taken some batches of the first, none to all.
		dropped := int(s.Totals().Dropped)
		if note != "" {
			note = fmt.Sprintf(note, dropped)
		}
		found := false
		for head := 0; head <= first; head += batchSize {
			rest := head + dropped
			mend := "\n"
			if head == 0 {
				mend = ""
			}
			found = found || dropped > 0 && got == in[:head]+mend+note+in[rest:] && in[rest-1] == '\n'
		}
		if !found {
			t.Errorf("with %d of %d bytes dropped, what arrived is not the head, the note and the tail", dropped, len(in))
		}
	}
}

func TestStderrNotOpen(t *testing.T) {
	r, w := newPipe(t)
	closeAll(t, r, w)
	if _, err := NewStderr(w, Options{}); err == nil {
		t.Error("no error for a closed handle")
	}
}

// deadStderr is the role of a program whose stderr has no reader. It must live.
func deadStderr() error {
	s, err := NewStderr(pipes.Handle(os.Stderr.Fd()), Options{})
	if err != nil {
		return err
	}
	in := []byte(numbered(200 << 10))
	for range 10 {
		s.Put("stdout", in)
		s.PutLine([]byte("a line"))
	}
	if !s.Close(time.Now().Add(time.Minute)) {
		return errors.New("a dead reader makes Close wait")
	}
	if got, want := s.Totals().Dropped, uint64(10*(len(in)+len("a line\n"))); got != want {
		return fmt.Errorf("%d bytes dropped, want %d", got, want)
	}
	return nil
}

func TestStderrDeadReader(t *testing.T) {
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	cmd := roleCommand(t, "dead-stderr")
	cmd.Stderr = w
	r.Close()
	if out, err := cmd.Output(); err != nil {
		t.Errorf("%v: %s", err, out)
	}
	w.Close()
}

// failing is a writer that writes half of what it gets, and fails.
type failing struct{ err error }

func (w failing) Write(p []byte) (int, error) { return len(p) / 2, w.err }
func (w failing) Close() error                { return nil }

// Errors are told once; after those that can pass, the writing goes on.
func TestStreamErrors(t *testing.T) {
	for _, again := range []bool{true, false} {
		told := make(chan error, 10)
		s := &stream{}
		s.start(failing{io.ErrShortWrite}, Options{Failed: func(err error) { told <- err }},
			batchSize, func(error) bool { return again })
		for range 3 {
			s.Put("stdout", []byte("0123456789"))
			if !s.Flush(soon(t)) {
				t.Fatal("not flushed")
			}
		}
		want := uint64(15)
		if !again {
			want = 25
		}
		if got := s.Totals().Dropped; got != want {
			t.Errorf("try again %v: dropped %d, want %d", again, got, want)
		}
		if !s.Close(soon(t)) {
			t.Error("not flushed")
		}
		if len(told) != 1 {
			t.Errorf("told %d errors, want 1", len(told))
		}
	}
}

// gated is a writer that waits in its first Write for the gate, and then fails.
type gated struct{ began, gate chan struct{} }

func (w gated) Write(p []byte) (int, error) {
	select {
	case <-w.began:
		return 0, io.ErrShortWrite
	default:
	}
	close(w.began)
	<-w.gate
	return len(p), nil
}
func (w gated) Close() error { return nil }

// A note that could not be written counts as nobody's byte.
func TestStreamCountsNoNote(t *testing.T) {
	w := gated{make(chan struct{}), make(chan struct{})}
	s := &stream{}
	s.start(w, Options{Capacity: 10, Gap: func(uint64) []byte { return []byte("(note)") }},
		batchSize, func(error) bool { return false })
	s.Put("stdout", []byte("written"))
	<-w.began
	s.Put("stdout", []byte("0123456789"))
	s.Put("stdout", []byte("abcdefgh"))
	close(w.gate)
	if !s.Close(soon(t)) {
		t.Error("not flushed")
	}
	if got := s.Totals().Dropped; got != 18 {
		t.Errorf("dropped %d bytes, want 18", got)
	}
}
