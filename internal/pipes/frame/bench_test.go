package frame

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
)

// notification returns a clean frame of about n bytes that looks like a text
// answer of a tool: short strings, numbers, a few escapes.
func notification(n int) []byte {
	var b strings.Builder
	b.WriteString(`{"jsonrpc":"2.0","method":"notifications/message","params":{"content":[`)
	for i := 0; b.Len() < n-20; i++ {
		if i > 0 {
			b.WriteByte(',')
		}
		left := n - 20 - b.Len()
		if left < 70 {
			fmt.Fprintf(&b, `"%s"`, strings.Repeat("z", max(left-3, 0)))
			break
		}
		fmt.Fprintf(&b, `{"type":"text","n":%d,"text":"line %d of a file\n\tis here, and plain"}`, i, i)
	}
	b.WriteString("]}}\n")
	return []byte(b.String())
}

func BenchmarkClean(b *testing.B) {
	for _, size := range []int{100, 4 << 10, 1 << 20} {
		b.Run(fmt.Sprint(size), func(b *testing.B) {
			p := notification(size)
			o := allOptions[0]
			s := NewScanner(o, NewConversation(o), Output{})
			b.SetBytes(int64(len(p)))
			b.ReportAllocs()
			for b.Loop() {
				s.Write(p, epoch)
			}
			if n := s.Stats(); n.StrayBytes > 0 || n.Frames == 0 {
				b.Fatal("not a clean frame")
			}
		})
	}
}

// BenchmarkChunks is the same in pieces of 64 KiB, as a pipe gives them.
func BenchmarkChunks(b *testing.B) {
	for _, size := range []int{100, 4 << 10, 1 << 20} {
		b.Run(fmt.Sprint(size), func(b *testing.B) {
			p := bytes.Repeat(notification(size), 1+(4<<20)/size)
			o := allOptions[0]
			s := NewScanner(o, NewConversation(o), Output{})
			b.SetBytes(int64(len(p)))
			b.ReportAllocs()
			for b.Loop() {
				for _, c := range pieces(p, 64<<10) {
					s.Write(c, epoch)
				}
			}
		})
	}
}

// BenchmarkStandardLibrary is what one pass of json.Valid over the same costs.
func BenchmarkStandardLibrary(b *testing.B) {
	p := notification(4 << 10)
	b.SetBytes(int64(len(p)))
	for b.Loop() {
		if !json.Valid(p) {
			b.Fatal("not valid")
		}
	}
}

func BenchmarkHeaders(b *testing.B) {
	body := bytes.TrimSpace(notification(4 << 10))
	p := fmt.Appendf(nil, "Content-Length: %d\r\n\r\n%s", len(body), body)
	o := allOptions[6]
	s := NewScanner(o, NewConversation(o), Output{})
	b.SetBytes(int64(len(p)))
	b.ReportAllocs()
	for b.Loop() {
		s.Write(p, epoch)
	}
	if n := s.Stats(); n.StrayBytes > 0 || n.Frames == 0 {
		b.Fatal("not a clean frame")
	}
}

func BenchmarkNoise(b *testing.B) {
	p := bytes.Repeat([]byte("2026-01-02 03:04:05 [info] request {\"a\":1} done in 3 ms\n"), 1000)
	o := allOptions[0]
	s := NewScanner(o, NewConversation(o), Output{})
	b.SetBytes(int64(len(p)))
	b.ReportAllocs()
	for b.Loop() {
		s.Write(p, epoch)
	}
}

func BenchmarkInbound(b *testing.B) {
	p := []byte(`{"jsonrpc":"2.0","id":12345,"method":"tools/call","params":{"name":"x","arguments":{"path":"/a/b/c"}}}` + "\n")
	c := NewConversation(allOptions[0])
	b.SetBytes(int64(len(p)))
	b.ReportAllocs()
	for b.Loop() {
		c.Inbound(p)
	}
}

// hard are inputs that a careless scanner takes quadratic time for.
func hard(n int) map[string][]byte {
	rep := func(s string) []byte { return bytes.Repeat([]byte(s), n/len(s)) }
	frame := "\n" + `{"jsonrpc":"2.0","id":1,"result":{}}` + "\n"
	half := `{"jsonrpc":"2.0","id":1,"result":`
	return map[string][]byte{
		"braces":          append(rep("{"), frame...),
		"brackets":        append(rep("["), frame...),
		"pairs":           append(rep("[{"), frame...),
		"nested":          append(rep(`{"a":`), frame...),
		"nestedBad":       append(rep(`{"a":`), "x"+frame...),
		"nestedArrays":    append(append([]byte(`{"a":`), rep("[")...), "x"+frame...),
		"braceInString":   append(rep(`{"x":"{z","a":`), "x"+frame...),
		"phases":          append(rep(`{"k":"[1,",",1,":",[1,",",1,":`), frame...),
		"quotes":          append(rep(`{"`), frame...),
		"halves":          append(rep(half+`"abc`), frame...),
		"halvesNested":    append(rep(half+`{"a":`), frame...),
		"halfLines":       append(rep(half+"\n"), frame...),
		"lines":           append(rep("{\"a\":\n"), frame...),
		"stringBrackets":  append(append([]byte(`{"a":"`), rep("[")...), frame...),
		"pretty":          append(append([]byte("{\"a\":[\n"), rep("{\"b\":[1]},\n")...), "x"+frame...),
		"longString":      append(append([]byte(`{"jsonrpc":"2.0","result":"`), rep("x")...), frame...),
		"spaces":          append(rep(" "), frame...),
		"blankLines":      append(rep("\n"), frame...),
		"crs":             append(rep("\r"), frame...),
		"numbers":         append(append([]byte("[1"), rep(",1")...), frame...),
		"gluedFrames":     append(rep(`x {"jsonrpc":"2.0","method":"a"} `), frame...),
		"frames":          append(rep(`{"jsonrpc":"2.0","method":"a"}`), frame...),
		"C":               append(rep("C"), frame...),
		"contentLength":   append(rep("Content-Length: "), frame...),
		"headerLines":     append(rep("Content-Length: 5\r\nX: "), frame...),
		"headersNoBody":   append(rep("Content-Length: 500000\r\n\r\n[1,"), frame...),
		"headersOfSpaces": append(append([]byte("Content-Length: 50000000\r\n\r\n"), rep(" ")...), frame...),
	}
}

// BenchmarkHard shows that no input costs more than a constant per byte: MB/s
// must not fall with the size.
func BenchmarkHard(b *testing.B) {
	for name := range hard(100) {
		for _, size := range []int{1 << 18, 1 << 22} {
			p := hard(size)[name]
			for _, cut := range []int{64 << 10, 100} {
				b.Run(fmt.Sprintf("%s/%d/%d", name, size, cut), func(b *testing.B) {
					b.SetBytes(int64(len(p)))
					for b.Loop() {
						for _, o := range []Options{allOptions[0], allOptions[6]} {
							scan(o, client[:1], p, func(int) int { return cut })
						}
					}
				})
			}
		}
	}
}
