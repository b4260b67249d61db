package demo

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"slices"
	"strconv"
	"strings"
)

const (
	defaultWidth = 80 // columns, where stdout is no terminal
	minWidth     = 40
	maxWidth     = 160 // more only tears the two sides apart
)

// A screen lays out the result. Apart from colours it prints ASCII only, so
// that one byte is one column, whatever the wire carried.
type screen struct {
	width  int // columns
	colour bool
}

// newScreen fits stdout, which may be any writer.
func newScreen(stdout io.Writer) screen {
	s := screen{width: defaultWidth}
	file, ok := stdout.(*os.File)
	if !ok {
		return s
	}
	width, colour := terminal(file)
	if width > 0 {
		s.width = min(max(width, minWidth), maxWidth)
	}
	_, unwanted := os.LookupEnv("NO_COLOR")
	s.colour = colour && !unwanted && os.Getenv("TERM") != "dumb"
	return s
}

func (s screen) render(bare, guarded *session) string {
	column := (s.width - 4) / 2 // one column stays free: some terminals wrap at the last
	var b strings.Builder
	b.WriteString("One noisy server, one client script, played twice. The client received:\n\n")
	fmt.Fprintf(&b, "%-*s | %s\n", column, "bare", "guarded")
	fmt.Fprintf(&b, "%s-+-%s\n", strings.Repeat("-", column), strings.Repeat("-", column))
	for _, row := range pair(bare.lines, guarded.lines) {
		left, right := s.cell(row[0], column), s.cell(row[1], column)
		b.WriteString(strings.TrimRight(left+" | "+right, " ") + "\n")
	}
	fmt.Fprintf(&b, "\nbare:    %s\n", bare.verdict())
	for _, id := range bare.lost() {
		reason := "never answered"
		if slices.Contains(bare.glued, id) {
			reason = "its reply is glued to noise"
		}
		fmt.Fprintf(&b, "         request %s is lost: %s\n", id, reason)
	}
	fmt.Fprintf(&b, "guarded: %s\n", guarded.verdict())
	fmt.Fprintf(&b, "         stray output on stderr instead: %d lines\n", bytes.Count(guarded.stderr.Bytes(), []byte("\n")))
	return b.String()
}

// pair puts each line of the right side beside the line of the left side that
// holds it, alone or glued to something, and all others beside nothing.
func pair(left, right []line) (rows [][2]*line) {
	next := 0
	for j := range right {
		match := next
		for match < len(left) && !strings.Contains(left[match].text, right[j].text) {
			match++
		}
		if match == len(left) {
			rows = append(rows, [2]*line{nil, &right[j]})
			continue
		}
		for ; next < match; next++ {
			rows = append(rows, [2]*line{&left[next], nil})
		}
		rows = append(rows, [2]*line{&left[next], &right[j]})
		next++
	}
	for ; next < len(left); next++ {
		rows = append(rows, [2]*line{&left[next], nil})
	}
	return rows
}

// cell is l in exactly width columns; blank if there is none.
func (s screen) cell(l *line, width int) string {
	if l == nil {
		return strings.Repeat(" ", width)
	}
	mark, colour := "noise", "\x1b[31m"
	if l.frame {
		mark, colour = "frame", "\x1b[32m"
	}
	rest := width - len(mark) - 1
	text := visible(l.text)
	if len(text) > rest {
		text = text[:rest-3] + "..."
	}
	if s.colour {
		mark = colour + mark + "\x1b[0m"
	}
	return fmt.Sprintf("%s %-*s", mark, rest, text)
}

// visible spells everything that is not printable ASCII, and the backslash, as
// Go does.
func visible(text string) string {
	quoted := strconv.QuoteToASCII(text)
	return strings.ReplaceAll(quoted[1:len(quoted)-1], `\"`, `"`)
}
