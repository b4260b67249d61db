package frame

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// client is what the client of the property tests has said.
var client = []string{
	`{"jsonrpc":"2.0","id":1,"method":"ping"}`,
	`{"jsonrpc":"2.0","id":2.0,"method":"ping"}`,
	`[{"jsonrpc":"2.0","id":"a","method":"x"},{"jsonrpc":"2.0","method":"n"}]`,
	`{"jsonrpc":"2.0","id":7,"result":{}}`,
}

// scan gives what the client has said to a new conversation and p to a new
// scanner, both in the pieces that cut names: so many bytes of what is left.
// Time stands still.
func scan(o Options, said []string, p []byte, cut func(left int) int) (*Scanner, *sink) {
	conv := NewConversation(o)
	inPieces([]byte(strings.Join(said, "\n")), cut, conv.Inbound)
	var k sink
	s := NewScanner(o, conv, k.output())
	inPieces(p, cut, func(p []byte) { s.Write(p, epoch) })
	s.Close(epoch)
	return s, &k
}

// inPieces gives p to take, each piece in a copy that lives only as long as the
// call, so that keeping it would show.
func inPieces(p []byte, cut func(left int) int, take func([]byte)) {
	for len(p) > 0 {
		n := min(len(p), max(1, cut(len(p))))
		piece := bytes.Clone(p[:n])
		take(piece)
		for i := range piece {
			piece[i] = '!'
		}
		p = p[n:]
	}
}

func whole(left int) int { return left }
func single(int) int     { return 1 }

var words = []string{
	`{"jsonrpc":"2.0","id":1,"result":{}}`, `{"jsonrpc":"2.0","id":2,"result":[1,{"a":"}"}]}`,
	`{"result":"x","jsonrpc":"2.0","id":"a"}`, `{"jsonrpc":"2.0","id":1.0,"error":{"code":-1}}`,
	`{"jsonrpc":"2.0","method":"tick","params":{}}`, `{"jsonrpc":"2.0","method":"n"}`, `{"jsonrpc":"2.0","id":7,"result":{}}`,
	`{"jsonrpc":"2.0","id":1,"method":"ping"}`, "{\n  \"jsonrpc\": \"2.0\",\r\n  \"id\": 2,\n \"result\": {}\n}",
	`[{"jsonrpc":"2.0","id":1,"result":{}},{"jsonrpc":"2.0","method":"q"}]`, `[{"jsonrpc":"2.0","id":1,"result":{}},5]`,
	`{"jsonrpc":"2.0","id":1,"result":{"a":`, `{"jsonrpc":"2.0","id":1,"resul`, `{"jsonrpc":"2.0","id":1,"result":"te{xt`,
	`{"id":1,"result":3}`, `{"level":"info","msg":"{}"}`, `{"a":{"jsonrpc":"2.0","id":1,"result":{}}}`, `{"a":[`,
	`{"jsonrpc":"2.0","id":2,"result":[NaN,-Infinity,"NaN"]}`, "{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":\"\xff\xe2\x82\"}",
	`{"jsonrpc":"2.0","id":1,"result":"\u00e9\\\"{"}`, "{\"jsonrpc\":\"2.0\",\"id\":\"\\u0061\",\"result\":\"é😀\"}",
	"{", "}", "[", "]", "\"", "\\", ",", ":", " ", "\t", "\r", "\n", "\n", "\n", "\n", "\r\n", "\n\n", "1", "N", "-",
	"log line", "Loading 10%\r", "\x1b[33m", "[ok]", "[1, 2", "{}", "[]", "[{", "{\"", "null", "\xef\xbb\xbf", "\x00", "é",
}

// blocks are what header framing is made of, good and bad.
var blocks = []string{
	block(words[0]), block("\n" + words[1] + " "), block(words[8]), block(words[9]), block(words[18]), block(words[19]), block(words[15]),
	"Content-Length: 38\n\r\r\n" + `{"jsonrpc":"2.0","id":1,"result":"😀é"}`, "content-length : 39 \r\n\r\n" + `{"jsonrpc":"2.0","id":1,"result":"😀é"}`,
	"X-A: b\r\n" + block(words[0]), "Content-Type: c\n" + block(words[4]), "Content-Length: 36\r\n", "Content-Length: 36\r\nA: b\r\n\r\n",
	"Content-Length: 20\r\n\r\n", "Content-Length: 99999999999\r\n\r\n", "Content-Length: -1\r\n\r\n", "Content-Length", "content-", "X-", "C", "x", "INFO: up\n", ": ",
}

func mixBlocks(r *rand.Rand) []byte {
	var b []byte
	for range 1 + r.IntN(8) {
		if r.IntN(3) == 0 {
			b = append(b, mix(r)...)
		} else {
			b = append(b, blocks[r.IntN(len(blocks))]...)
		}
	}
	return b
}

func mix(r *rand.Rand) []byte {
	var b []byte
	for range 1 + r.IntN(14) {
		b = append(b, words[r.IntN(len(words))]...)
		if r.IntN(3) == 0 {
			b = append(b, '\n')
		}
	}
	return b
}

var allOptions = []Options{
	{Framing: JSONRPC, Repair: true, Glued: true},
	{Framing: JSONRPC, Repair: true},
	{Framing: JSONRPC},
	{Framing: JSONRPC, Repair: true, Glued: true, StrictIDs: true},
	{Framing: JSONRPC, Repair: true, Glued: true, MaxFrame: 60},
	{Framing: JSON, Repair: true, Glued: true},
	{Framing: Headers, Repair: true, Glued: true},
	{Framing: Headers},
	{Framing: Auto, Repair: true, Glued: true},
}

func checkCuts(t *testing.T, o Options, p []byte, r *rand.Rand) {
	t.Helper()
	said := client
	switch o.Framing {
	case Headers:
		said = []string{"Content-Length: 40\r\n\r\n" + client[0]}
	case Auto:
		said = nil
	}
	s, want := scan(o, said, p, whole)
	balance(t, s, want)
	for _, cut := range []func(int) int{single, func(left int) int { return r.IntN(9) }, func(left int) int { return r.IntN(left + 1) }} {
		s, got := scan(o, said, p, cut)
		balance(t, s, got)
		same(t, "wire", got.wire, want.wire)
		same(t, "stray", got.stray, want.stray)
		if len(got.frames) != len(want.frames) || len(got.notes) != len(want.notes) {
			t.Errorf("%d frames and notes %v, want %d and %v", len(got.frames), got.notes, len(want.frames), want.notes)
		}
	}
	if t.Failed() {
		t.Fatalf("options %+v, input %q", o, p)
	}
}

// modelOptions are those that the model knows.
var modelOptions = []Options{
	{Framing: JSONRPC, Repair: true, Glued: true},
	{Framing: JSONRPC, Repair: true},
	{Framing: JSONRPC, Glued: true},
	{Framing: JSONRPC},
	{Framing: JSONRPC, Repair: true, Glued: true, StrictIDs: true},
	{Framing: JSON, Repair: true, Glued: true},
	{Framing: JSON},
	{Framing: Headers, Repair: true},
	{Framing: Headers},
	{Framing: Raw},
}

func checkModel(t *testing.T, o Options, p []byte) {
	t.Helper()
	said := client
	if o.Framing == Headers {
		said = []string{block(client[0])}
	}
	_, got := scan(o, said, p, whole)
	m := newModel(o, client)
	switch o.Framing {
	case JSON:
		m.runJSON(p)
	case Headers:
		m.runHeaders(p)
	case Raw:
		m.wire = p
	default:
		m.run(p)
	}
	same(t, "wire", got.wire, m.wire)
	same(t, "stray", got.stray, m.stray)
	if t.Failed() {
		t.Fatalf("options %+v, input %q", o, p)
	}
}

// TestCutsMeanNothing: the same bytes give the same result however they are
// cut, and no byte is lost or made up.
func TestCutsMeanNothing(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for range 3000 {
		checkCuts(t, allOptions[r.IntN(len(allOptions))], mix(r), r)
		checkCuts(t, allOptions[6+r.IntN(3)], mixBlocks(r), r)
	}
}

// TestAgainstModel compares with the slow, obvious model.
func TestAgainstModel(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	for range 1500 {
		checkModel(t, modelOptions[r.IntN(len(modelOptions))], mix(r))
		checkModel(t, modelOptions[7+r.IntN(2)], mixBlocks(r))
	}
}

// heard says what a conversation knows once it has heard p.
func heard(o Options, p []byte, cut func(left int) int) string {
	c := NewConversation(o)
	inPieces(p, cut, c.Inbound)
	var recent []string
	for _, e := range c.inbound.ring {
		recent = append(recent, fmt.Sprintf("%d %x %s", e.size, e.hash, e.p))
	}
	return fmt.Sprintln(c.framing, c.decided, c.Tracking(), c.frames, c.style, c.open, c.older, recent)
}

// checkInbound: how the client's bytes were cut makes no difference, and
// whatever they are, a request on a line of its own is heard.
func checkInbound(t *testing.T, o Options, p []byte, r *rand.Rand) {
	t.Helper()
	want := heard(o, p, whole)
	for _, cut := range []func(int) int{single, func(left int) int { return r.IntN(left + 1) }} {
		if got := heard(o, p, cut); got != want {
			t.Fatalf("options %+v, input %q: cut:\n%s, whole:\n%s", o, p, got, want)
		}
	}
	c := NewConversation(o)
	c.Inbound(p)
	if !c.decided || c.framing == Headers || c.framing == Raw || c.inValue {
		return
	}
	c.Inbound([]byte("\n" + `{"jsonrpc":"2.0","id":"asked","method":"x"}` + "\n"))
	if !c.Tracking() || !c.isOpen(hashString([]byte("asked"), false)) {
		t.Fatalf("options %+v: the request behind %q is not heard", o, p)
	}
}

func TestInboundCutsMeanNothing(t *testing.T) {
	r := rand.New(rand.NewPCG(9, 10))
	for range 2000 {
		checkInbound(t, allOptions[r.IntN(len(allOptions))], mix(r), r)
		checkInbound(t, allOptions[6+r.IntN(3)], mixBlocks(r), r)
	}
}

// TestCleanFramesAllPass: each clean frame arrives once and in order, whatever
// stands on the other lines.
func TestCleanFramesAllPass(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 6))
	for range 2000 {
		var in []byte
		var want [][]byte
		for i := range 1 + r.IntN(5) {
			noise := mix(r)
			in = append(in, noise...)
			in = append(in, '\n')
			f := []byte(`{"jsonrpc":"2.0","id":"unique` + string(rune('a'+i)) + `","result":{}}` + "\n")
			in = append(in, f...)
			want = append(want, f)
		}
		_, k := scan(allOptions[0], client, in, whole)
		n := 0
		for _, f := range k.frames {
			if bytes.Contains(f, []byte("unique")) {
				if n >= len(want) || !bytes.Equal(f, want[n]) {
					t.Fatalf("frame %q is not next of %q in %q", f, want, in)
				}
				n++
			}
		}
		if n != len(want) {
			t.Fatalf("%d of %d clean frames in %q gave %q", n, len(want), in, k.frames)
		}
	}
}

// TestTimeLosesNothing: with any cut and any pauses, at which holds and waits
// end, clean frames arrive once and in order, and the bytes add up.
func TestTimeLosesNothing(t *testing.T) {
	r := rand.New(rand.NewPCG(7, 8))
	for range 4000 {
		var in []byte
		n := 1 + r.IntN(4)
		for i := range n {
			in = append(in, mix(r)...)
			in = append(in, '\n')
			in = append(in, `{"jsonrpc":"2.0","id":"unique`+string(rune('a'+i))+`","result":{}}`+"\n"...)
		}
		in = append(in, mix(r)...)
		var k sink
		conv := NewConversation(allOptions[0])
		for _, c := range client {
			conv.Inbound([]byte(c))
		}
		s := NewScanner(allOptions[0], conv, k.output())
		now := epoch
		for rest := in; len(rest) > 0; {
			c := min(len(rest), 1+r.IntN(30))
			s.Write(bytes.Clone(rest[:c]), now)
			rest = rest[c:]
			next := now.Add([]time.Duration{0, time.Millisecond, cleanWait, holdLong}[r.IntN(4)])
			pass(s, now, next)
			now = next
		}
		s.Close(now)
		balance(t, s, &k)
		if d := s.Deadline(); !d.IsZero() {
			t.Errorf("something still waits at the end")
		}
		found := 0
		for _, f := range k.frames {
			if bytes.Contains(f, []byte("unique"+string(rune('a'+found)))) {
				found++
			} else if bytes.Contains(f, []byte("unique")) {
				t.Errorf("%q comes twice or too early", f)
			}
		}
		if found != n || t.Failed() {
			t.Fatalf("%d of %d clean frames of %q: %q", found, n, in, k.frames)
		}
	}
}

// TestClientSpeaksAnyTime: wherever in the server's output the client's first
// message comes, cut or not, frames of its kind arrive once and in order, and
// the bytes add up.
func TestClientSpeaksAnyTime(t *testing.T) {
	r := rand.New(rand.NewPCG(11, 12))
	firsts := map[Framing]string{
		JSONRPC: client[0] + "\n", JSON: `{"a":1}` + "\n", Headers: block(client[0]), Raw: "HELO\r\n",
	}
	for framing, first := range firsts {
		for range 1000 {
			var in []byte
			n := 1 + r.IntN(4)
			for i := range n {
				in = append(in, mix(r)...)
				f := `{"jsonrpc":"2.0","id":"unique` + string(rune('a'+i)) + `","result":{}}`
				if framing == Headers {
					f = block(f)
				} else {
					f = "\n" + f + "\n"
				}
				in = append(in, f...)
			}
			in = append(in, mix(r)...)
			conv := NewConversation(Options{})
			var k sink
			s := NewScanner(Options{Repair: true, Glued: true}, conv, k.output())
			now, speaks := epoch, r.IntN(len(in))
			said := []byte(first)
			cut := func(left int) int { return r.IntN(min(left, 20)) }
			inPieces(in, cut, func(p []byte) {
				speaks -= len(p)
				if speaks < 0 && len(said) > 0 {
					m := 1 + r.IntN(len(said))
					conv.Inbound(said[:m])
					said = said[m:]
				}
				s.Write(p, now)
				next := now.Add([]time.Duration{0, time.Millisecond, cleanWait}[r.IntN(3)])
				pass(s, now, next)
				now = next
			})
			conv.Inbound(said)
			s.Close(now)
			balance(t, s, &k)
			found := 0
			for at := 0; ; found++ {
				i := bytes.Index(k.wire[at:], []byte("unique"))
				if i < 0 {
					break
				}
				at += i + len("unique")
				if want := byte('a' + found); k.wire[at] != want {
					t.Errorf("unique%c comes where unique%c should", k.wire[at], want)
				}
			}
			if found != n || t.Failed() {
				t.Fatalf("%v: %d of %d frames of %q: wire %q, stray %q", framing, found, n, in, k.wire, k.stray)
			}
		}
	}
}

func seeds(f *testing.F) [][]byte {
	var out [][]byte
	for _, path := range casePaths(f) {
		if strings.HasPrefix(filepath.Base(path), "B29") {
			continue
		}
		var b []byte
		for _, st := range loadCase(f, path).Server {
			b = append(b, st.Out...)
		}
		if len(b) < 4<<10 {
			out = append(out, b)
		}
	}
	for _, w := range append(words, blocks...) {
		out = append(out, []byte(w))
	}
	return out
}

func FuzzLines(f *testing.F) {
	for _, b := range seeds(f) {
		f.Add(b)
	}
	f.Fuzz(func(t *testing.T, p []byte) {
		if len(p) > 400 {
			return // the model takes the cube of the length
		}
		for _, o := range modelOptions {
			checkModel(t, o, p)
		}
	})
}

func FuzzInbound(f *testing.F) {
	for _, b := range append(seeds(f), []byte(strings.Join(blocks, ""))) {
		for i := range allOptions {
			f.Add(byte(i), uint64(i), b)
		}
	}
	f.Fuzz(func(t *testing.T, o byte, seed uint64, p []byte) {
		checkInbound(t, allOptions[int(o)%len(allOptions)], p, rand.New(rand.NewPCG(seed, 1)))
	})
}

func FuzzCuts(f *testing.F) {
	for _, b := range seeds(f) {
		for i := range allOptions {
			f.Add(byte(i), uint64(i), b)
		}
	}
	f.Fuzz(func(t *testing.T, o byte, seed uint64, p []byte) {
		checkCuts(t, allOptions[int(o)%len(allOptions)], p, rand.New(rand.NewPCG(seed, 1)))
	})
}
