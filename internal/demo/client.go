package demo

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"slices"
	"strings"
	"time"
)

// The client's script. The rest goes out in one piece once the first request
// is answered: the request behind "steal" is then on its way when the
// subprocess reads, and no lost reply has to be waited for.
const (
	opening = `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"demo","version":"1"}}}
`
	rest = `{"jsonrpc":"2.0","method":"notifications/initialized"}
{"jsonrpc":"2.0","id":2,"method":"tools/list"}
{"jsonrpc":"2.0","id":3,"method":"tools/call","params":{"name":"native"}}
{"jsonrpc":"2.0","id":4,"method":"tools/call","params":{"name":"log"}}
{"jsonrpc":"2.0","id":5,"method":"tools/call","params":{"name":"spawn"}}
{"jsonrpc":"2.0","id":6,"method":"tools/call","params":{"name":"steal"}}
{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"quiet"}}
`
)

var requested = []string{"1", "2", "3", "4", "5", "6", "7"}

// A line is one line that the client received, without its LF.
type line struct {
	text  string
	frame bool
}

// A session is one play of the script. It is the Writer that the server's
// output is copied to, so the client never blocks the server.
type session struct {
	lines   []line
	stray   int           // lines that are no frames
	replies []string      // ids of replies with a result, as they arrived
	glued   []string      // ids of replies at the end of a stray line
	first   chan struct{} // closed at the first frame
	partial []byte        // received, line not ended yet
	stderr  bytes.Buffer
	started bool
	err     error // of the start, or how the started process ended
}

// play runs argv and the script against it, until its output ends or ctx does.
func play(ctx context.Context, env, argv []string) *session {
	s := &session{first: make(chan struct{})}
	cmd := exec.CommandContext(ctx, argv[0], argv[1:]...)
	cmd.Env, cmd.Stdout, cmd.Stderr = env, s, &s.stderr
	cmd.WaitDelay = time.Second // for what still holds its output when it has ended
	stdin, err := cmd.StdinPipe()
	if err != nil {
		s.err = err
		return s
	}
	if s.err = cmd.Start(); s.err != nil {
		return s
	}
	s.started = true
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		s.err = cmd.Wait()
		if s.err != nil && ctx.Err() != nil {
			s.err = context.Cause(ctx) // instead of "killed"
		}
		if len(s.partial) > 0 {
			s.take()
		}
	}()

	// A failed write means that nobody reads any more. The missing replies
	// show it, and the exit status says more.
	_, _ = io.WriteString(stdin, opening)
	select {
	case <-s.first:
		_, _ = io.WriteString(stdin, rest)
	case <-ended:
	}
	_ = stdin.Close()
	<-ended
	return s
}

// Write takes the next bytes from the wire. Only LF ends a line.
func (s *session) Write(p []byte) (int, error) {
	n := len(p)
	for {
		head, tail, ended := bytes.Cut(p, []byte("\n"))
		s.partial = append(s.partial, head...)
		if !ended {
			return n, nil
		}
		s.take()
		p = tail
	}
}

// take judges the collected line as a client does: it is a message or it isn't.
func (s *session) take() {
	text := s.partial
	s.partial = nil
	id, frame := parseReply(text)
	s.lines = append(s.lines, line{string(text), frame})
	switch {
	case !frame:
		s.stray++
		if i := bytes.IndexByte(text, '{'); i > 0 {
			if id, ok := parseReply(text[i:]); ok && id != "" {
				s.glued = append(s.glued, id)
			}
		}
		return
	case id != "":
		s.replies = append(s.replies, id)
	}
	select {
	case <-s.first:
	default:
		close(s.first)
	}
}

// parseReply reports whether text is one JSON-RPC message, and the id if it is
// a reply with a result.
func parseReply(text []byte) (id string, frame bool) {
	var m struct {
		Version string          `json:"jsonrpc"`
		ID      json.RawMessage `json:"id"`
		Result  json.RawMessage `json:"result"`
	}
	if json.Unmarshal(text, &m) != nil || m.Version != "2.0" {
		return "", false
	}
	if m.Result != nil {
		id = string(m.ID)
	}
	return id, true
}

// lost lists the requests without a reply.
func (s *session) lost() (ids []string) {
	for _, id := range requested {
		if !slices.Contains(s.replies, id) {
			ids = append(ids, id)
		}
	}
	return ids
}

// verdict says what the client got.
func (s *session) verdict() string {
	return fmt.Sprintf("%d of %d replies arrived, %d stray lines on the wire",
		len(requested)-len(s.lost()), len(requested), s.stray)
}

// fault is nil for a session as it should be: ended well, only frames on the
// wire, every reply there and in order.
func (s *session) fault() error {
	switch {
	case s.err != nil:
		return s.err
	case s.stray > 0 || len(s.lost()) > 0:
		return errors.New(s.verdict())
	case !slices.Equal(s.replies, requested):
		return errors.New("replies out of order or repeated: " + strings.Join(s.replies, ", "))
	}
	return nil
}
