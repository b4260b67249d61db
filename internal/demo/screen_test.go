package demo

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestVisible(t *testing.T) {
	for text, want := range map[string]string{
		"":               "",
		`{"a":"b's"}`:    `{"a":"b's"}`,
		"\r 1%\t\x1b[0m": `\r 1%\t\x1b[0m`,
		"\xff\x00\x7f":   `\xff\x00\x7f`,
		"\u00e9\u202e":   `\u00e9\u202e`,
		`a\"b\`:          `a\\"b\\`,
	} {
		if got := visible(text); got != want {
			t.Errorf("%q: got %s, want %s", text, got, want)
		}
	}
}

func TestCellHasItsWidth(t *testing.T) {
	for _, c := range []struct {
		l    *line
		want string
	}{
		{nil, "                  "},
		{&line{"", false}, "noise             "},
		{&line{"123456789012", true}, "frame 123456789012"},
		{&line{"1234567890123", false}, "noise 123456789..."},
		{&line{"\r\r\r\r\r\r\r", false}, `noise \r\r\r\r\...`},
	} {
		if got := (screen{}).cell(c.l, 18); got != c.want {
			t.Errorf("%v: %q, want %q", c.l, got, c.want)
		}
	}
	got := screen{colour: true}.cell(&line{"x", true}, 18)
	if want := "\x1b[32mframe\x1b[0m x           "; got != want {
		t.Errorf("coloured: %q, want %q", got, want)
	}
}

func TestPair(t *testing.T) {
	for _, c := range []struct{ left, right, want string }{
		{"", "", ""},
		{"a b", "", "a| b|"},
		{"", "a b", "|a |b"},
		{"n A xB C", "A B C D", "n| A|A xB|B C|C |D"},
		{"A n B m", "A B C", "A|A n| B|B |C m|"},
		{"A C", "A B C", "A|A |B C|C"},
		{"A A", "A A", "A|A A|A"},
		{"A B", "B A", "A| B|B |A"},
	} {
		var got []string
		for _, row := range pair(split(c.left), split(c.right)) {
			got = append(got, textOf(row[0])+"|"+textOf(row[1]))
		}
		if joined := strings.Join(got, " "); joined != c.want {
			t.Errorf("%q and %q: %q, want %q", c.left, c.right, joined, c.want)
		}
	}
}

func split(words string) (lines []line) {
	for _, word := range strings.Fields(words) {
		lines = append(lines, line{text: word})
	}
	return lines
}

func textOf(l *line) string {
	if l == nil {
		return ""
	}
	return l.text
}

func TestScreenKeepsItsWidth(t *testing.T) {
	long := line{strings.Repeat("\x1b", 200), false}
	s := &session{lines: []line{long, long}}
	for _, width := range []int{minWidth, 80, 81, maxWidth} {
		text := screen{width: width}.render(s, s)
		table := strings.Split(text, "\n\n")[1]
		for row := range strings.SplitSeq(table, "\n") {
			if len(row) >= width {
				t.Errorf("width %d: %d columns in %q", width, len(row), row)
			}
		}
	}
}

func TestNoTerminalNoColours(t *testing.T) {
	file, err := os.Create(filepath.Join(t.TempDir(), "out"))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = file.Close() }()
	want := screen{width: defaultWidth}
	if got := newScreen(file); got != want {
		t.Errorf("file: %+v", got)
	}
	if got := newScreen(&bytes.Buffer{}); got != want {
		t.Errorf("buffer: %+v", got)
	}
}
