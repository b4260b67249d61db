package stray

import (
	"io"
	"os"
	"testing"
	"testing/synctest"
	"time"

	"github.com/wireguardrun/wireguardrun/internal/pipes"
)

// flood is the role of a child that prints more than any buffer takes.
func flood() error {
	_, err := os.Stdout.WriteString(numbered(4 << 20))
	return err
}

// A child prints without end, nobody reads our stderr: the child is not held.
func TestPumpStalledStderr(t *testing.T) {
	r, w := newPipe(t)
	s, err := NewStderr(w, Options{})
	if err != nil {
		t.Fatal(err)
	}
	cmd := roleCommand(t, "flood")
	stdout, childs, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer stdout.Close()
	cmd.Stdout = childs
	p := Start("stdout", stdout, s, func() { stdout.Close() })
	if err := cmd.Run(); err != nil {
		t.Error(err)
	}
	childs.Close()
	if !p.Drain(time.Hour, time.Hour) {
		t.Error("the pump goes on")
	}
	want := uint64(len(numbered(4 << 20)))
	if got := s.Totals().Sources["stdout"].Bytes; got != want || p.bytes.Load() != want {
		t.Errorf("%d bytes reached the sink, the pump says %d, the child wrote %d", got, p.bytes.Load(), want)
	}
	s.Close(now)
	closeAll(t, w)
	// Where bytes were dropped an LF may have been added.
	if got := <-readAll(t, r); uint64(len(got))+s.Totals().Dropped < want {
		t.Errorf("%d bytes arrived and %d were dropped, of %d", len(got), s.Totals().Dropped, want)
	}
}

// The child has gone, another process keeps its pipe: what was in the pipe is
// delivered, and the pump ends.
func TestPumpDrainsHeldPipe(t *testing.T) {
	r, w := newPipe(t)
	in := numbered(30 << 10)
	f := os.NewFile(uintptr(w), "pipe")
	if _, err := f.WriteString(in); err != nil {
		t.Fatal(err)
	}
	defer f.Close() // open all the time
	conn := pipes.NewConn(r)
	var s Null
	closed := make(chan struct{})
	p := Start("stdout", conn, &s, func() {
		conn.Retire(func() { pipes.Close(r); close(closed) })
	})
	if !p.Drain(60*time.Millisecond, time.Hour) {
		t.Fatal("the pump goes on")
	}
	<-closed
	if got := s.Totals().Sources["stdout"].Bytes; got != uint64(len(in)) {
		t.Errorf("%d bytes delivered of %d", got, len(in))
	}
}

// tap is a reader that a test feeds and stops.
type tap struct {
	flow chan string
	off  chan struct{}
}

func (r tap) Read(p []byte) (int, error) {
	select {
	case s, ok := <-r.flow:
		if !ok {
			return 0, io.EOF
		}
		return copy(p, s), nil
	case <-r.off:
		return 0, os.ErrClosed
	}
}

func TestPumpDrainTimes(t *testing.T) {
	const quiet, limit = 300 * time.Millisecond, time.Second
	tests := []struct {
		name    string
		every   time.Duration // between writes of those who keep the pipe
		writes  int
		eof     bool
		want    time.Duration
		stopped bool
	}{
		{"the end at once", 0, 0, true, 0, false},
		{"nothing more", 0, 0, false, quiet, true},
		{"a last word", 150 * time.Millisecond, 1, false, 500 * time.Millisecond, true},
		{"words, then the end", 150 * time.Millisecond, 3, true, 450 * time.Millisecond, false},
		{"no end", 150 * time.Millisecond, 1000, false, limit, true},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := tap{make(chan string), make(chan struct{})}
				var s Null
				p := Start("stdout", r, &s, func() { close(r.off) })
				fed := make(chan struct{})
				go func() {
					defer close(fed)
					for range tt.writes {
						time.Sleep(tt.every)
						select {
						case r.flow <- "word\n":
						case <-r.off:
							return
						}
					}
					if tt.eof {
						close(r.flow)
					}
				}()
				start := time.Now()
				if !p.Drain(quiet, limit) {
					t.Error("the pump goes on")
				}
				if got := time.Since(start); got != tt.want {
					t.Errorf("took %v, want %v", got, tt.want)
				}
				select {
				case <-r.off:
					if !tt.stopped {
						t.Error("stopped before the end")
					}
				default:
					if tt.stopped {
						t.Error("not stopped")
					}
				}
				<-fed
			})
		})
	}
}

// A reader that does not heed stop makes Drain return all the same.
func TestPumpCannotBeStopped(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := tap{make(chan string), nil}
		var s Null
		p := Start("stdout", r, &s, func() {})
		if p.Drain(time.Second, time.Minute) {
			t.Error("Drain says that the pump has ended")
		}
		close(r.flow)
		<-p.done
	})
}
