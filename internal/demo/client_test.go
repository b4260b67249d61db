package demo

import (
	"fmt"
	"slices"
	"strings"
	"testing"
)

const wireText = "banner\n" +
	`{"jsonrpc":"2.0","id":1,"result":{}}` + "\n" +
	"\rbar" + `{"jsonrpc":"2.0","id":2,"result":{}}` + "\n" +
	`{"level":"info","id":3}` + "\n" +
	`{"jsonrpc":"2.0","method":"notifications/message"}` + "\n" +
	`{"jsonrpc":"2.0","id":3,"error":{"code":-32603,"message":"no"}}` + "\n" +
	"\n" +
	`{"jsonrpc":"2.0","id":4,"result":null` // cut off

func TestSessionJudgesLines(t *testing.T) {
	for _, size := range []int{1, 7, len(wireText)} {
		s := &session{first: make(chan struct{})}
		for chunk := range slices.Chunk([]byte(wireText), size) {
			if n, err := s.Write(chunk); n != len(chunk) || err != nil {
				t.Fatalf("Write: %d, %v", n, err)
			}
		}
		if len(s.partial) > 0 {
			s.take()
		}
		var shape strings.Builder
		for _, l := range s.lines {
			_, _ = fmt.Fprintf(&shape, "%v ", l.frame)
		}
		if got, want := shape.String(), "false true false false true true false false "; got != want {
			t.Errorf("size %d: frames %s, want %s", size, got, want)
		}
		if s.stray != 5 || !slices.Equal(s.replies, []string{"1"}) || !slices.Equal(s.glued, []string{"2"}) {
			t.Errorf("size %d: %d stray, replies %q, glued %q", size, s.stray, s.replies, s.glued)
		}
		if got, want := s.lost(), []string{"2", "3", "4", "5", "6", "7"}; !slices.Equal(got, want) {
			t.Errorf("size %d: lost %q, want %q", size, got, want)
		}
		select {
		case <-s.first:
		default:
			t.Errorf("size %d: first frame not announced", size)
		}
	}
}

func TestSessionFault(t *testing.T) {
	swapped := []string{"1", "3", "2", "4", "5", "6", "7"}
	for _, c := range []struct {
		name  string
		s     session
		fault string // "" for none
	}{
		{"sound", session{replies: requested}, ""},
		{"nothing", session{}, "0 of 7 replies arrived, 0 stray lines on the wire"},
		{"stray", session{replies: requested, stray: 2}, "7 of 7 replies arrived, 2 stray lines on the wire"},
		{"swapped", session{replies: swapped}, "replies out of order or repeated: 1, 3, 2, 4, 5, 6, 7"},
		{"repeated", session{replies: append(slices.Clone(requested), "7")}, "replies out of order or repeated: 1, 2, 3, 4, 5, 6, 7, 7"},
	} {
		got := ""
		if err := c.s.fault(); err != nil {
			got = err.Error()
		}
		if got != c.fault {
			t.Errorf("%s: %q, want %q", c.name, got, c.fault)
		}
	}
}
