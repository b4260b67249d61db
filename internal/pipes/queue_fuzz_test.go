package pipes

import (
	"bytes"
	"errors"
	"io"
	"math/rand/v2"
	"testing"
)

// slowQueue is the rule of Queue, written down as plainly as possible.
type slowQueue struct {
	max          int
	held         []byte
	gap, dropped uint64
}

func (q *slowQueue) put(p []byte) {
	all := append(bytes.Clone(q.held), p...)
	cut := max(0, len(all)-q.max)
	if cut > 0 {
		// On to a line start within the window; the cut may be one already.
		for start := cut; start <= cut+min(64<<10, q.max/4); start++ {
			if all[start-1] == '\n' {
				cut = start
				break
			}
		}
	}
	q.held = all[cut:]
	q.gap += uint64(cut)
	q.dropped += uint64(cut)
}

func (q *slowQueue) next(n int) (out []byte, gap uint64) {
	if n < len(q.held) {
		if end := bytes.LastIndexByte(q.held[:n], '\n'); end >= 0 {
			n = end + 1
		}
	}
	n = min(n, len(q.held))
	out, q.held = q.held[:n], q.held[n:]
	gap, q.gap = q.gap, 0
	return out, gap
}

// checkQueue plays a script of Puts and Nexts against the model. It also
// checks, whatever the rule, that what came out and what was dropped are, at
// their positions, what went in.
func checkQueue(t *testing.T, size int, script []byte) {
	real, model := NewQueue(size), &slowQueue{max: size}
	var in []byte // all that went in
	pos := 0      // position in it
	take := func(n int) {
		buf := make([]byte, n)
		n, gap, err := real.Next(buf)
		if err != nil {
			t.Fatalf("Next: %v", err)
		}
		out, wantGap := model.next(len(buf))
		if gap != wantGap || !bytes.Equal(buf[:n], out) {
			t.Fatalf("at %d: got %q after a gap of %d, model says %q after %d", pos, buf[:n], gap, out, wantGap)
		}
		pos += int(gap)
		if !bytes.Equal(buf[:n], in[pos:pos+n]) {
			t.Fatalf("at %d: got %q, %q went in there", pos, buf[:n], in[pos:pos+n])
		}
		pos += n
	}
	for len(script) >= 2 {
		op, arg := script[0], int(script[1])
		script = script[2:]
		if op%4 == 0 {
			if len(model.held) > 0 {
				take(1 + arg*size/128)
			}
			continue
		}
		p := make([]byte, arg*size/100)
		for i := range p {
			// Lines of about op bytes, each byte telling its place.
			if p[i] = byte('a' + (len(in)+i)%26); (len(in)+i)%(int(op)+2) == 0 {
				p[i] = '\n'
			}
		}
		real.Put(p)
		model.put(p)
		in = append(in, p...)
		if len(real.ring) > size {
			t.Fatalf("%d bytes of memory for a capacity of %d", len(real.ring), size)
		}
	}
	real.Close()
	for len(model.held) > 0 {
		take(1 + size/3)
	}
	if _, _, err := real.Next(make([]byte, 1)); !errors.Is(err, io.EOF) {
		t.Fatalf("at the end: %v, want EOF", err)
	}
	if pos != len(in) || real.Dropped() != model.dropped {
		t.Fatalf("accounted for %d bytes of %d; dropped %d, model %d", pos, len(in), real.Dropped(), model.dropped)
	}
}

func FuzzQueue(f *testing.F) {
	f.Add(uint16(1), []byte{1, 255, 0, 1, 2, 3})
	f.Add(uint16(40), []byte{5, 60, 5, 60, 0, 20, 5, 60, 255, 255, 0, 255})
	f.Add(uint16(5000), []byte{100, 90, 0, 10, 100, 20, 0, 3, 255, 1, 255, 90})
	f.Fuzz(func(t *testing.T, size uint16, script []byte) {
		if len(script) > 400 {
			return
		}
		checkQueue(t, 1+int(size)%6000, script)
	})
}

func TestQueueAgainstModel(t *testing.T) {
	rnd := rand.New(rand.NewPCG(1, 2))
	for range 400 {
		script := make([]byte, rnd.IntN(120))
		for i := range script {
			script[i] = byte(rnd.Uint32())
		}
		checkQueue(t, 1+rnd.IntN(6000), script)
	}
	// Large enough for the 64 KiB window to be the smaller bound.
	for range 4 {
		script := make([]byte, 40)
		for i := range script {
			script[i] = byte(rnd.Uint32())
		}
		checkQueue(t, 400<<10, script)
	}
}
