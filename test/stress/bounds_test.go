//go:build linux

package stress

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"strings"
	"sync/atomic"
	"testing"
	"time"
)

// What is asked of a server before it misbehaves, and what is answered after.
const (
	askedLine    = `{"jsonrpc":"2.0","id":1,"method":"go"}` + "\n"
	answeredLine = `{"jsonrpc":"2.0","id":1,"result":{}}` + "\n"
	noticeLine   = `{"jsonrpc":"2.0","method":"note","params":{"text":"as usual"}}` + "\n"
)

const howEnv = "WGR_STRESS_HOW"

// misbehaving is a server that does one of the things that must cost no memory.
func misbehaving() int {
	var how string
	var size int
	if _, err := fmt.Sscan(os.Getenv(howEnv), &how, &size); err != nil {
		return 2
	}
	fill := func(f *os.File, p string) {
		for n := 0; n < size; n += len(p) {
			_, _ = f.WriteString(p)
		}
	}
	if how == "reads-nothing" {
		for { // it ends with the pipe, or by the wrapper
			if _, err := os.Stdout.WriteString(noticeLine); err != nil {
				return 0
			}
			time.Sleep(time.Millisecond)
		}
	}
	in := bufio.NewReader(os.Stdin)
	if line, err := in.ReadString('\n'); line != askedLine {
		fmt.Fprintf(os.Stderr, "asked %q, %v\n", line, err)
		return 1
	}
	text := strings.Repeat("x", 64<<10)
	switch how {
	case "no-newline":
		fill(os.Stdout, text)
		_, _ = os.Stdout.WriteString("\n")
	case "endless-frame":
		_, _ = os.Stdout.WriteString(`{"jsonrpc":"2.0","method":"`)
		fill(os.Stdout, text)
		_, _ = os.Stdout.WriteString("\n")
	case "unread":
		go func() {
			if line, _ := in.ReadString('\n'); line == noticeLine {
				_, _ = os.Stderr.WriteString("noticed\n")
			}
		}()
		fill(os.Stdout, noticeLine)
	case "noise":
		go fill(os.Stderr, text+"\n")
		fill(os.Stdout, text+"\n")
	}
	_, _ = os.Stdout.WriteString(answeredLine)
	_, _ = io.Copy(io.Discard, in)
	return 0
}

// Memory is bounded, whatever either side does, and the session goes on where
// it can. The bounds are in MiB of resident memory at its most; docs/performance.md
// has them. WGR_STRESS_MB says how much is printed.
func TestMemoryIsBounded(t *testing.T) {
	size := int(fromEnv(t, "WGR_STRESS_MB", 96)) << 20
	for _, wire := range []string{"auto", "stdio"} {
		t.Run(wire, func(t *testing.T) {
			start := func(t *testing.T, how string, size int, flags ...string) *wired {
				w := startWired(t, "misbehaving", append([]string{"--wire=" + wire}, flags...), fmt.Sprintf("%s=%s %d", howEnv, how, size))
				return w
			}
			within := func(t *testing.T, w *wired, bound float64) {
				t.Helper()
				peak := w.peak()
				t.Logf("at most %.1f MiB were resident", peak)
				if peak > bound {
					t.Errorf("at most %.1f MiB were resident, the bound is %.0f", peak, bound)
				}
			}
			t.Run("a server that prints without newline", func(t *testing.T) {
				w := start(t, "no-newline", size)
				go func() { _, _ = io.Copy(io.Discard, w.err) }()
				w.write(askedLine)
				w.read(answeredLine)
				within(t, w, 32)
				w.end()
			})
			for _, max := range []int{1, 64} {
				t.Run(fmt.Sprintf("a frame that never ends, --max-frame=%dMiB", max), func(t *testing.T) {
					w := start(t, "endless-frame", max<<20+size/2, fmt.Sprintf("--max-frame=%dMiB", max))
					go func() { _, _ = io.Copy(io.Discard, w.err) }()
					w.write(askedLine)
					w.read(answeredLine)
					within(t, w, 32+5*float64(max))
					w.end()
				})
			}
			t.Run("a client that stops reading", func(t *testing.T) {
				w := start(t, "unread", size)
				w.write(askedLine)
				first := make([]byte, len(noticeLine))
				if _, err := io.ReadFull(w.out, first); err != nil {
					t.Fatal(err)
				}
				w.write(noticeLine) // the other direction goes on
				if line, err := bufio.NewReader(w.err).ReadString('\n'); line != "noticed\n" {
					t.Fatalf("the server tells %q, %v", line, err)
				}
				for n := len(noticeLine); n < size; n += len(noticeLine) {
					w.read(noticeLine)
				}
				w.read(answeredLine)
				within(t, w, 32)
				w.end()
			})
			t.Run("a client that sends for ever to a server that reads nothing", func(t *testing.T) {
				w := start(t, "reads-nothing", size)
				var sent atomic.Int64
				done := make(chan struct{})
				go func() {
					defer close(done)
					long := []byte(`{"jsonrpc":"2.0","method":"` + strings.Repeat("x", 64<<10) + `"}` + "\n")
					for {
						n, err := w.in.Write(long)
						sent.Add(int64(n))
						if err != nil {
							return
						}
					}
				}()
				// Until the client is held back: nothing is sent while the
				// server is heard a hundred times.
				for seen, heard := int64(-1), 0; heard < 100; heard++ {
					w.read(noticeLine)
					if now := sent.Load(); now != seen {
						seen, heard = now, 0
					}
				}
				t.Logf("%d MiB were sent", sent.Load()>>20)
				within(t, w, 48)
				_ = w.cmd.Process.Kill()
				<-done
			})
			t.Run("a stderr that nobody reads", func(t *testing.T) {
				w := start(t, "noise", size)
				w.write(askedLine)
				w.read(answeredLine)
				within(t, w, 48)
				w.end()
			})
		})
	}
}
