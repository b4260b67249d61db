package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"regexp"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/rs/zerolog"
)

func TestSayText(t *testing.T) {
	tests := []struct {
		name string
		say  func(*say)
		want string
	}{
		{"message", func(s *say) { s.info().Msg("server started") }, "wireguardrun: server started\n"},
		{"no message", func(s *say) { s.info().Str("a", "b").Msg("") }, "wireguardrun:   a=b\n"},
		{"fields keep their order", func(s *say) { s.warn().Str("path", "/x").Int("bytes", 3).Bool("cut", true).Msg("stray") },
			"wireguardrun: stray  path=/x bytes=3 cut=true\n"},
		{"error", func(s *say) { s.error().Err(errors.New("no room")).Str("path", "f").Msg("cannot write") },
			"wireguardrun: cannot write: no room  path=f\n"},
		{"no error", func(s *say) { s.error().Err(nil).Msg("m") }, "wireguardrun: m\n"},
		{"hint", func(s *say) { s.warn().Str("hint", "use --stray").Str("k", "v").Msg("stray output") },
			"wireguardrun: stray output  k=v\nwireguardrun: hint: use --stray\n"},
		{"fail", func(s *say) { s.fail(fmt.Errorf("start: %w", withHint(errors.New("no"), "do"))) },
			"wireguardrun: start: no\nwireguardrun: hint: do\n"},
		{"fail without hint", func(s *say) { s.fail(errors.New("no")) }, "wireguardrun: no\n"},
		{"quotes in a message stay", func(s *say) { s.info().Msg(`got "x" and \`) }, `wireguardrun: got "x" and \` + "\n"},
		{"values that are not one word", func(s *say) {
			s.info().Str("a", "").Str("b", "x y").Str("c", `"`).Str("d", "k=v").Str("e", `\d`).Str("f", "é€😀").Msg("m")
		}, `wireguardrun: m  a="" b="x y" c="\"" d="k=v" e=\d f=é€😀` + "\n"},
		{"one message is one line", func(s *say) {
			s.error().Err(errors.New("e\r\nf")).Str("k\n", "v\nw\t").Str("hint", "h\ni").Msg("a\nb\x00\x1b[31mred\u0085\u2028\u009bz\x7f")
		}, `wireguardrun: a\nb\x00\x1b[31mred\u0085\u2028\u009bz\x7f: e\r\nf  k\n="v\nw\t"` + "\nwireguardrun: hint: h\\ni\n"},
		{"bytes that are no text", func(s *say) { s.info().Str("k", "a\xffb").Bytes("l", []byte("x\xfe")).Msg("m\xff") },
			"wireguardrun: m\uFFFD  k=a\uFFFDb l=x\uFFFD\n"},
		{"nested values", func(s *say) {
			s.info().Strs("l", []string{"a,b", "}]\n"}).Dict("d", zerolog.Dict().Int("n", 1).Str("s", "x")).Int("z", 9).Msg("m")
		}, `wireguardrun: m  l="[\"a,b\",\"}]\\n\"]" d="{\"n\":1,\"s\":\"x\"}" z=9` + "\n"},
		{"numbers", func(s *say) { s.info().Float64("f", 1.5).Int("i", -2).Dur("d", 3*time.Millisecond).Msg("m") },
			"wireguardrun: m  f=1.5 i=-2 d=3\n"},
		{"debug is not written at info", func(s *say) { s.debug().Str("k", "v").Msg("m") }, ""},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			var out writes
			test.say(newSay(&out, zerolog.InfoLevel, formatText))
			if got := out.String(); got != test.want {
				t.Errorf("\n got %q\nwant %q", got, test.want)
			}
			if test.want != "" && len(out.all) != 1 {
				t.Errorf("%d writes for one message", len(out.all))
			}
		})
	}
}

// writes keeps what each call of Write was given.
type writes struct {
	mu  sync.Mutex
	all []string
}

func (w *writes) Write(p []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.all = append(w.all, string(p))
	return len(p), nil
}

func (w *writes) String() string { return strings.Join(w.all, "") }

func TestSayLevels(t *testing.T) {
	levels := []zerolog.Level{zerolog.DebugLevel, zerolog.InfoLevel, zerolog.WarnLevel, zerolog.ErrorLevel, zerolog.Disabled}
	for _, format := range []logFormat{formatText, formatJSON} {
		for i, level := range levels {
			var out writes
			s := newSay(&out, level, format)
			s.debug().Msg("m")
			s.info().Msg("m")
			s.warn().Msg("m")
			s.fail(errors.New("m"))
			if want := 4 - i; len(out.all) != want {
				t.Errorf("format %d level %v: %d messages, want %d", format, level, len(out.all), want)
			}
		}
	}
}

func TestSayDebugHasTime(t *testing.T) {
	var out writes
	s := newSay(&out, zerolog.DebugLevel, formatText)
	s.info().Int("n", 1).Msg("m")
	if !regexp.MustCompile(`^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z wireguardrun: m  n=1\n$`).MatchString(out.String()) {
		t.Errorf("got %q", out.String())
	}
}

func TestSayJSON(t *testing.T) {
	var out writes
	s := newSay(&out, zerolog.InfoLevel, formatJSON)
	s.fail(withHint(errors.New("a\nb"), "do\nthis"))
	s.warn().Int("n", 1).Msg("second")
	lines := strings.Split(strings.TrimSuffix(out.String(), "\n"), "\n")
	if len(lines) != 2 {
		t.Fatalf("%d lines: %q", len(lines), out.String())
	}
	var first, second map[string]any
	for i, into := range []*map[string]any{&first, &second} {
		if err := json.Unmarshal([]byte(lines[i]), into); err != nil {
			t.Fatal(err)
		}
		if _, err := time.Parse(time.RFC3339Nano, fmt.Sprint((*into)["time"])); err != nil {
			t.Error(err)
		}
	}
	if first["level"] != "error" || first["message"] != "a\nb" || first["hint"] != "do\nthis" {
		t.Errorf("got %v", first)
	}
	if second["level"] != "warn" || second["message"] != "second" || second["n"] != 1.0 {
		t.Errorf("got %v", second)
	}
}

// A writer that fails is passed over in silence; zerolog would print to the
// process's own stderr, which may be the wire.
func TestSayDeadWriter(t *testing.T) {
	handler := zerolog.ErrorHandler
	defer func() { zerolog.ErrorHandler = handler }()
	zerolog.ErrorHandler = func(err error) { t.Errorf("zerolog was told of %v", err) }
	for _, format := range []logFormat{formatText, formatJSON} {
		newSay(shortWriter{}, zerolog.InfoLevel, format).info().Msg("m")
	}
}

func TestSayFromManyGoroutines(t *testing.T) {
	const each = 50
	var out writes
	s := newSay(&out, zerolog.InfoLevel, formatText)
	var wg sync.WaitGroup
	for _, name := range []string{"a", "b", "c", "d"} {
		wg.Go(func() {
			for range each {
				s.info().Str("k", name).Msg("message " + name)
			}
		})
	}
	wg.Wait()
	count := map[string]int{}
	for _, line := range out.all {
		count[line]++
	}
	for _, name := range []string{"a", "b", "c", "d"} {
		if line := fmt.Sprintf("wireguardrun: message %[1]s  k=%[1]s\n", name); count[line] != each {
			t.Errorf("%q came %d times, want %d", line, count[line], each)
		}
	}
}

func TestHints(t *testing.T) {
	base := errors.New("base")
	tests := []struct {
		err  error
		want string
	}{
		{base, ""},
		{withHint(base, ""), ""},
		{withHint(base, "a"), "a"},
		{withHint(withHint(base, "inner"), "outer"), "outer"},
		{fmt.Errorf("x: %w", withHint(base, "a")), "a"},
		{errors.Join(errors.New("x"), withHint(base, "a")), "a"},
		{errors.Join(base, os.NewSyscallError("pipe", syscall.EMFILE)), "let more files be open at once: ulimit -n"},
		{nil, ""},
	}
	for _, test := range tests {
		if got := hintOf(test.err); got != test.want {
			t.Errorf("hintOf(%v) = %q, want %q", test.err, got, test.want)
		}
		if test.err != nil && !errors.Is(test.err, base) {
			t.Errorf("%v lost its cause", test.err)
		}
	}
}

// FuzzSayText: whatever the text, a message is one line without control
// characters.
func FuzzSayText(f *testing.F) {
	f.Add("a", "b", "c")
	f.Add("time\n", "\x1b]0;x\a", "\u2028\\")
	f.Add("hint", `{"a":[`, `\u0000"`)
	f.Add("hint", "", "an empty one is no line")
	f.Fuzz(func(t *testing.T, key, value, message string) {
		var out writes
		newSay(&out, zerolog.InfoLevel, formatText).info().Str(key, value).Str("last", "z").Msg(message)
		got := out.String()
		lines := 1
		if key == hintField && value != "" {
			lines = 2
		}
		if strings.Count(got, "\n") != lines || !strings.HasSuffix(got, "\n") || strings.ContainsAny(got, "\x00\x1b\r\u0085\u009b") {
			t.Errorf("got %q", got)
		}
		if !strings.Contains(got, "last=z\n") {
			t.Errorf("%q, %q, %q: the field after them is lost: %q", key, value, message, got)
		}
	})
}

func BenchmarkSay(b *testing.B) {
	b.Run("new", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			newSay(io.Discard, zerolog.InfoLevel, formatText)
		}
	})
	s := newSay(io.Discard, zerolog.InfoLevel, formatText)
	b.Run("text", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			s.info().Str("path", "/x").Int("bytes", 3).Msg("stray output")
		}
	})
	b.Run("console writer", func(b *testing.B) {
		b.ReportAllocs()
		log := zerolog.New(zerolog.ConsoleWriter{Out: io.Discard, NoColor: true, PartsExclude: []string{zerolog.TimestampFieldName}})
		for b.Loop() {
			log.Info().Str("path", "/x").Int("bytes", 3).Msg("stray output")
		}
	})
	b.Run("not written", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			s.debug().Str("path", "/x").Int("bytes", 3).Msg("stray output")
		}
	})
}
