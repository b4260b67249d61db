package pipes

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// takeAll returns what q holds; it must not be empty unless q is closed.
func takeAll(t *testing.T, q *Queue) (out string, gap uint64) {
	t.Helper()
	buf := make([]byte, 1<<20)
	n, gap, err := q.Next(buf)
	if err != nil {
		t.Fatalf("Next: %v", err)
	}
	return string(buf[:n]), gap
}

func TestQueueDropsUpToALineStart(t *testing.T) {
	long := strings.Repeat("x", 70)
	tests := []struct {
		name string
		max  int
		puts []string
		want string
		gap  uint64
	}{
		{"fits", 8, []string{"ab\n", "cdef\n"}, "ab\ncdef\n", 0},
		{"cut in a line", 16, []string{"one\ntwo\nthree\n", "four\n"}, "two\nthree\nfour\n", 4},
		{"cut at a line start", 12, []string{"one\ntwo\n", "three\ns\n"}, "two\nthree\ns\n", 4},
		{"rest of the line goes too", 40, []string{"first line\n", "second line\n", "third line\n", "4th lin\n"}, "second line\nthird line\n4th lin\n", 11},
		{"no line end near", 40, []string{long[:40], "tail"}, long[:36] + "tail", 4},
		{"line end too far", 40, []string{long[:30] + "\n" + long[:9], "tail"}, long[:26] + "\n" + long[:9] + "tail", 4},
		{"line end in the new bytes", 40, []string{long[:33], "abc\ndefghi"}, long[:30] + "abc\ndefghi", 3},
		{"larger than the queue", 20, []string{"old\n", long[:5] + "\nab\ncdef\nghij\nklmno\n"}, "ab\ncdef\nghij\nklmno\n", 10},
		{"larger, one line", 20, []string{"old\n", long}, long[:20], 54},
		{"one byte", 1, []string{"a", "\n", "b"}, "b", 2},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			q := NewQueue(tt.max)
			total := 0
			for _, p := range tt.puts {
				q.Put([]byte(p))
				total += len(p)
			}
			got, gap := takeAll(t, q)
			if got != tt.want || gap != tt.gap {
				t.Errorf("got %q after a gap of %d, want %q after %d", got, gap, tt.want, tt.gap)
			}
			if q.Dropped() != gap || uint64(len(got))+gap != uint64(total) {
				t.Errorf("out %d, gap %d, dropped %d do not add up to %d", len(got), gap, q.Dropped(), total)
			}
		})
	}
}

func TestQueueMemory(t *testing.T) {
	q := NewQueue(0)
	if q.ring != nil {
		t.Error("an unused queue has memory")
	}
	q.Put([]byte("hello"))
	if got := len(q.ring); got != queueStart {
		t.Errorf("5 bytes take %d, want %d", got, queueStart)
	}
	chunk := bytes.Repeat([]byte("line\n"), 1000)
	for range 1000 {
		q.Put(chunk)
	}
	q.Put(make([]byte, 3*QueueSize))
	if got := len(q.ring); got != QueueSize {
		t.Errorf("the full queue takes %d bytes, want %d", got, QueueSize)
	}
}

func TestQueueClose(t *testing.T) {
	q := NewQueue(0)
	q.Put([]byte("left"))
	q.Close()
	q.Put([]byte("late"))
	if got, _ := takeAll(t, q); got != "left" {
		t.Errorf("got %q", got)
	}
	for range 2 {
		if n, _, err := q.Next(make([]byte, 9)); n != 0 || !errors.Is(err, io.EOF) {
			t.Errorf("Next = %d, %v, want EOF", n, err)
		}
	}
	if got := q.Dropped(); got != 4 {
		t.Errorf("dropped %d bytes, want the 4 that came late", got)
	}
	if !q.Flush(time.Time{}) {
		t.Error("Flush has something to wait for")
	}
}

// The consumer that waits is woken by each of Put, Close and Abandon.
func TestQueueWakes(t *testing.T) {
	for name, tt := range map[string]struct {
		wake func(*Queue)
		err  error
	}{
		"Put":     {func(q *Queue) { q.Put([]byte("x")) }, nil},
		"Close":   {(*Queue).Close, io.EOF},
		"Abandon": {(*Queue).Abandon, io.ErrClosedPipe},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				q := NewQueue(0)
				woken := make(chan error)
				go func() {
					_, _, err := q.Next(make([]byte, 1))
					woken <- err
				}()
				synctest.Wait() // Next waits
				tt.wake(q)
				if err := <-woken; !errors.Is(err, tt.err) {
					t.Errorf("Next: %v, want %v", err, tt.err)
				}
			})
		})
	}
}

func TestQueueAbandon(t *testing.T) {
	q := NewQueue(100)
	q.Put(bytes.Repeat([]byte("x"), 110))
	q.Next(make([]byte, 30))
	q.Abandon()
	q.Put([]byte("more"))
	if got := q.Dropped(); got != 10+70+4 {
		t.Errorf("dropped %d bytes, want 84", got)
	}
	if q.ring != nil {
		t.Error("an abandoned queue keeps memory")
	}
	if !q.Flush(time.Time{}) {
		t.Error("Flush has something to wait for")
	}
}

// Flush waits for the bytes that the consumer has taken but not finished with,
// and for no byte that came after the call.
func TestQueueFlush(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := NewQueue(0)
		q.Put([]byte("ab"))
		q.Next(make([]byte, 2))
		if q.Flush(time.Now().Add(time.Second)) {
			t.Fatal("flushed before the consumer had finished")
		}
		flushed := make(chan bool)
		go func() { flushed <- q.Flush(time.Now().Add(time.Minute)) }()
		synctest.Wait()
		q.Put([]byte("later"))
		q.Next(make([]byte, 1)) // says that ab is done with
		if !<-flushed {
			t.Error("not flushed")
		}
		if q.Flush(time.Now().Add(time.Second)) {
			t.Error("flushed with bytes in the queue")
		}
	})
}

func TestQueuePace(t *testing.T) {
	const patience = 100 * time.Millisecond
	synctest.Test(t, func(t *testing.T) {
		q := NewQueue(100)
		waits := func(n int) time.Duration {
			start := time.Now()
			q.Pace(n, patience)
			return time.Since(start)
		}
		expect := func(what string, got, want time.Duration) {
			t.Helper()
			if got != want {
				t.Errorf("%s: waited %v, want %v", what, got, want)
			}
		}
		buf := make([]byte, 60)
		expect("empty queue", waits(1000), 0)
		q.Put(make([]byte, 100))

		go func() {
			time.Sleep(30 * time.Millisecond)
			q.Next(buf)
		}()
		expect("a consumer that comes in time", waits(50), 30*time.Millisecond)

		q.Put(make([]byte, 60))
		expect("a stalled consumer", waits(1), patience)
		expect("the same again", waits(1), 0)
		q.Next(buf)
		q.Put(make([]byte, 60))
		expect("it took too little to be trusted", waits(1), 0)
		q.Next(buf)
		q.Put(make([]byte, 60))
		expect("it is trusted again", waits(1), patience)

		q.Next(buf)
		q.Next(buf) // a whole queue's worth again
		q.Put(make([]byte, 100))
		go func() {
			time.Sleep(time.Millisecond)
			q.Close()
		}()
		expect("closed", waits(1), time.Millisecond)
	})
}

// Pace is told of room also by a Next that was waiting already.
func TestQueuePaceWakes(t *testing.T) {
	for range 200 {
		synctest.Test(t, func(t *testing.T) {
			q := NewQueue(10)
			go q.Next(make([]byte, 10))
			synctest.Wait() // Next waits
			start := time.Now()
			q.Put(make([]byte, 10))
			q.Pace(1, time.Second)
			if waited := time.Since(start); waited != 0 {
				t.Fatalf("waited %v for a queue that was emptied", waited)
			}
		})
	}
}

// Several producers and a consumer that stalls now and then: each producer's
// lines come whole and in order, and every byte is accounted for.
func TestQueueProducers(t *testing.T) {
	const producers, lines = 4, 5000
	q := NewQueue(16 << 10)
	var wg sync.WaitGroup
	var in [producers]int
	progress, done := make(chan struct{}, 1), make(chan struct{})
	for id := range producers {
		wg.Go(func() {
			for i := range lines {
				line := fmt.Appendf(nil, "%d %d %s\n", id, i, strings.Repeat("-", i%97))
				q.Put(line)
				in[id] += len(line)
				if i%500 == 499 { // more than the queue holds
					select {
					case progress <- struct{}{}:
					default:
					}
				}
			}
		})
	}
	go func() { wg.Wait(); q.Close(); close(done) }()

	var out bytes.Buffer
	buf := make([]byte, 1000)
	var gaps uint64
	for round := 0; ; round++ {
		n, gap, err := q.Next(buf)
		if errors.Is(err, io.EOF) {
			break
		}
		if gap > 0 && out.Len() > 0 && !bytes.HasSuffix(out.Bytes(), []byte("\n")) {
			out.WriteString(" cut\n")
			gaps -= 5 // what this test added
		}
		gaps += gap
		out.Write(buf[:n])
		if round%50 == 0 {
			select {
			case <-progress:
			case <-done:
			}
		}
	}
	total := 0
	for _, n := range in {
		total += n
	}
	if q.Dropped() == 0 {
		t.Error("nothing was dropped: the test tests nothing")
	}
	if got := uint64(out.Len()) + gaps; got != uint64(total) {
		t.Errorf("out and gaps are %d bytes, %d went in", got, total)
	}
	var last [producers]int
	for id := range last {
		last[id] = -1
	}
	for line := range strings.Lines(out.String()) {
		var id, i int
		var rest string
		n, _ := fmt.Sscanf(line, "%d %d %s", &id, &i, &rest)
		if strings.HasSuffix(line, " cut\n") {
			continue
		}
		if n < 2 || i <= last[id] || strings.Trim(rest, "-") != "" || len(rest) != i%97 {
			t.Fatalf("bad line %q after line %d of producer %d", line, last[id], id)
		}
		last[id] = i
	}
}

func BenchmarkQueue4kB(b *testing.B) {
	chunk := bytes.Repeat([]byte("a line of sixty-four bytes, as a server that prints may write.\n"), 64)
	for _, paced := range []bool{true, false} {
		b.Run(fmt.Sprintf("paced=%v", paced), func(b *testing.B) {
			q := NewQueue(0)
			done := make(chan struct{})
			go func() {
				defer close(done)
				for buf := make([]byte, 64<<10); ; {
					if _, _, err := q.Next(buf); err != nil {
						return
					}
				}
			}()
			b.SetBytes(int64(len(chunk)))
			for b.Loop() {
				if paced {
					q.Pace(len(chunk), time.Second)
				}
				q.Put(chunk)
			}
			q.Close()
			<-done
			b.ReportMetric(100*float64(q.Dropped())/float64(b.N*len(chunk)), "%dropped")
		})
	}
}
