//go:build linux

package stress

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/wireguardrun/wireguardrun/guard"
)

const (
	soakWriters = 10 // processes that print
	soakEnv     = "WGR_STRESS_SOAK"
)

// soakFrame is the n-th message of a kind: both sides know it. Sizes vary from
// a few bytes to most.
func soakFrame(kind string, n, most int) []byte {
	rng := rand.New(rand.NewPCG(uint64(len(kind)), uint64(n)))
	var head string
	switch kind {
	case "request":
		head = fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":"call","params":["`, n)
	case "response":
		head = fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"result":["`, n)
	default:
		head = fmt.Sprintf(`{"jsonrpc":"2.0","method":"tell","params":[%d,"`, n)
	}
	const tail = "\"]}\n"
	size := rng.IntN(300)
	if rng.IntN(20) == 0 {
		size = rng.IntN(most)
	}
	b := append(make([]byte, 0, most), head...)
	for pieces := []string{"text ", `\"quoted\" `, "{braces} ", "größe ", `[1,2]\n`}; size > 0; {
		p := pieces[rng.IntN(len(pieces))]
		if len(b)+len(p)+len(tail) > most {
			break
		}
		b = append(b, p...)
		size -= len(p)
	}
	return append(b, tail...)
}

// soakServer answers every request, checks it, and tells something after each
// second one. It reads and writes the handed wire if it is asked to, and has
// processes that print to its standard output all the time.
func soakServer() int {
	var frames, lines, most int
	var how string
	if _, err := fmt.Sscan(os.Getenv(soakEnv), &frames, &lines, &most, &how); err != nil {
		return 2
	}
	var in io.Reader = os.Stdin
	var out io.Writer = os.Stdout
	if how == "aware" {
		wire, err := guard.Open()
		if err != nil {
			fmt.Fprintln(os.Stderr, "error", err)
			return 1
		}
		in, out = wire, wire
	}
	var noise sync.WaitGroup
	for id := range soakWriters {
		cmd := exec.Command(os.Args[0])
		cmd.Env = append(os.Environ(), roleEnv+"=noise", fmt.Sprintf("%s=%d %d", soakEnv, id, lines))
		cmd.Stdout = os.Stdout
		if err := cmd.Start(); err != nil {
			fmt.Fprintln(os.Stderr, "error", err)
			return 1
		}
		noise.Go(func() { _ = cmd.Wait() })
	}
	r := bufio.NewReaderSize(in, 1<<20)
	for n := range frames {
		got, err := r.ReadSlice('\n')
		if want := soakFrame("request", n, most); !bytes.Equal(got, want) {
			fmt.Fprintf(os.Stderr, "error: request %d is %.100q, %v, want %.100q\n", n, got, err, want)
			return 1
		}
		_, _ = out.Write(soakFrame("response", n, most))
		if n%2 == 1 {
			_, _ = out.Write(soakFrame("notice", n/2, most))
		}
	}
	noise.Wait()
	_, _ = out.Write([]byte(answeredLine))
	_, _ = io.Copy(io.Discard, r)
	return 0
}

// soakNoise prints numbered lines, a few at a time.
func soakNoise() int {
	var id, lines int
	if _, err := fmt.Sscan(os.Getenv(soakEnv), &id, &lines); err != nil {
		return 2
	}
	for n := range lines {
		_, _ = fmt.Printf("noise %d %d {\"level\":\"info\",\"msg\":\"not a message\"}\n", id, n)
		if n%10 == 9 {
			time.Sleep(time.Millisecond)
		}
	}
	return 0
}

// Hours of traffic in little time, with noise from ten processes in it:
// nothing is lost, doubled or out of order, and every line of noise is where it
// belongs. WGR_STRESS_SOAK_FRAMES is how many frames go each way.
func TestSoak(t *testing.T) {
	frames := int(fromEnv(t, "WGR_STRESS_SOAK_FRAMES", 4000))
	for _, tt := range []struct {
		name, how string
		flags     []string
		most      int // bytes of a frame
	}{
		// A frame that is longer than what a pipe takes in one piece may be
		// torn by another writer before anybody can help it.
		{"stdio", "unmodified", []string{"--wire=stdio"}, 4096},
		{"auto, unmodified", "unmodified", []string{"--wire=auto"}, 4096},
		{"auto, aware", "aware", []string{"--wire=auto"}, 64 << 10},
		{"fds", "aware", []string{"--wire=fds"}, 64 << 10},
	} {
		t.Run(tt.name, func(t *testing.T) { soak(t, tt.how, tt.flags, frames, tt.most) })
	}
}

func soak(t *testing.T, how string, flags []string, frames, most int) {
	lines := frames / 4
	w := startWired(t, "soak", flags, fmt.Sprintf("%s=%d %d %d %s", soakEnv, frames, lines, most, how))
	var all sync.WaitGroup
	all.Go(func() {
		for n := range frames {
			if _, err := w.in.Write(soakFrame("request", n, most)); err != nil {
				t.Errorf("request %d: %v", n, err)
				return
			}
		}
	})
	d := &diverted{t: t, next: make([]int, soakWriters)}
	all.Go(func() { d.read(w.err) })
	r := w.out
	next := func(what string, n int, want []byte) bool {
		got, err := r.ReadSlice('\n')
		if !bytes.Equal(got, want) {
			t.Errorf("%s %d is %.100q, %v, want %.100q", what, n, got, err, want)
			return false
		}
		return true
	}
	for n := 0; n < frames && next("response", n, soakFrame("response", n, most)); n++ {
		if n%2 == 1 && !next("notice", n/2, soakFrame("notice", n/2, most)) {
			break
		}
	}
	if !t.Failed() {
		next("last answer", 1, []byte(answeredLine))
	}
	_ = w.in.Close()
	if rest, err := io.ReadAll(r); len(rest) > 0 || err != nil {
		t.Errorf("behind the last frame comes %.100q, %v", rest, err)
	}
	all.Wait()
	w.end()
	d.check(lines)
}

// diverted follows the noise that comes out of the diversion.
type diverted struct {
	t       *testing.T
	next    []int // line of each writer
	missing int   // bytes
	dropped int   // bytes that the wrapper said it had dropped
}

func (d *diverted) read(r io.Reader) {
	lines := bufio.NewScanner(r)
	for lines.Scan() {
		line := lines.Text()
		var id, n int
		if _, err := fmt.Sscanf(line, "noise %d %d {", &id, &n); err == nil && strings.HasSuffix(line, "}") {
			if n < d.next[id] {
				d.t.Errorf("noise of writer %d: line %d comes after line %d", id, n, d.next[id]-1)
			}
			d.missing += (n - d.next[id]) * (len(line) + 1)
			d.next[id] = n + 1
			continue
		}
		if _, bytes, ok := strings.Cut(line, "bytes="); ok && strings.Contains(line, "missing here") {
			count, _ := strconv.Atoi(strings.Fields(bytes)[0])
			d.dropped += count
			continue
		}
		d.t.Errorf("in the diversion is %.200q", line)
	}
}

// check compares what has come with what was printed. Only what the wrapper
// says that it dropped may be missing: this test may be a slow reader.
func (d *diverted) check(lines int) {
	for id, n := range d.next {
		if n < lines && d.dropped == 0 {
			d.t.Errorf("noise of writer %d: %d lines of %d", id, n, lines)
		}
	}
	if d.missing > d.dropped {
		d.t.Errorf("%d bytes of noise are missing, %d were dropped", d.missing, d.dropped)
	}
	d.t.Logf("%d bytes of noise were dropped", d.dropped)
}
