package stray

import (
	"fmt"
	"slices"
	"strings"
	"testing"
)

func TestLogLines(t *testing.T) {
	full := strings.Repeat("x", LineMax)
	tests := []struct {
		name string
		puts []string
		want []string
	}{
		{"lines", []string{"one\ntwo\n"}, []string{"one", "two"}},
		{"in pieces", []string{"o", "ne", "\ntw", "o", "\n"}, []string{"one", "two"}},
		{"empty lines", []string{"\n\na\n"}, []string{"", "", "a"}},
		{"CR LF", []string{"one\r\ntwo\r", "\nth\rree\r\n"}, []string{"one", "two", "th\rree"}},
		{"unfinished", []string{"one\ntw", "o"}, []string{"one", "two"}},
		{"longest", []string{full + "\na\n"}, []string{full, "a"}},
		{"longest in pieces", []string{full[1:], "x", "\na\n"}, []string{full, "a"}},
		{"longer", []string{full + "yz\na\n"}, []string{full + LineCut, "yz", "a"}},
		{"longer in pieces", []string{full, "y", "z\na"}, []string{full + LineCut, "yz", "a"}},
		{"much longer", []string{full + full + full[:9]}, []string{full + LineCut, full + LineCut, full[:9]}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			var got []string
			s := NewLog(func(line []byte, source string) { got = append(got, string(line)) }, nil)
			for _, p := range tt.puts {
				s.Put("stdout", []byte(p))
			}
			if !s.Flush(now) {
				t.Error("not flushed")
			}
			if !slices.Equal(got, tt.want) {
				t.Errorf("got %.200q, want %.200q", got, tt.want)
			}
		})
	}
}

func TestLogSources(t *testing.T) {
	var got []string
	s := NewLog(func(line []byte, source string) { got = append(got, source+":"+string(line)) }, nil)
	s.Put("stdout", []byte("half "))
	s.Put("stderr", []byte("other\nrest"))
	s.Put("stdout", []byte("line\nend"))
	s.Close(now)
	s.Put("stdout", []byte("late"))
	s.Close(now)
	want := []string{"stderr:other", "stdout:half line", "stderr:rest", "stdout:end"}
	if !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
	totals := s.Totals()
	if totals.Dropped != 4 || totals.Sources["stdout"] != (Count{Bytes: 17, Lines: 2}) ||
		totals.Sources["stderr"] != (Count{Bytes: 10, Lines: 2}) {
		t.Errorf("counted %+v", totals)
	}
}

// Log, logger and stderr as a run uses them.
func TestLogToStderr(t *testing.T) {
	r, w := newPipe(t)
	behind, err := NewStderr(w, Options{})
	if err != nil {
		t.Fatal(err)
	}
	out := readAll(t, r)
	s := NewLog(func(line []byte, source string) { fmt.Fprintf(behind, "%s %q\n", source, line) }, behind)
	s.Pace(10)
	s.Put("stdout", []byte("one\ntwo"))
	if !s.Close(soon(t)) || !behind.Close(soon(t)) {
		t.Error("not flushed")
	}
	closeAll(t, w)
	if got, want := <-out, "stdout \"one\"\nstdout \"two\"\n"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestCounts(t *testing.T) {
	tests := []struct {
		puts  []string
		lines uint64
	}{
		{nil, 0}, {[]string{""}, 0}, {[]string{"\n"}, 1}, {[]string{"a"}, 1},
		{[]string{"a", "b"}, 1}, {[]string{"a", "\n"}, 1}, {[]string{"a", "\n", "b"}, 2},
		{[]string{"a\nb\nc", "", "d\n"}, 3}, {[]string{"\n\n", "\n"}, 3},
	}
	for _, tt := range tests {
		var s Null
		s.Pace(1)
		for _, p := range tt.puts {
			s.Put("x", []byte(p))
		}
		if !s.Flush(now) || !s.Close(now) {
			t.Error("Null waits for something")
		}
		want := Count{Bytes: uint64(len(strings.Join(tt.puts, ""))), Lines: tt.lines}
		if got := s.Totals(); got.Sources["x"] != want || got.Dropped != 0 {
			t.Errorf("%q: counted %+v, want %+v", tt.puts, got, want)
		}
	}
}
