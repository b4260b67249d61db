package main

import (
	"bytes"

	"github.com/rs/zerolog"

	"github.com/wireguardrun/wireguardrun/internal/pipes"
	"github.com/wireguardrun/wireguardrun/internal/pipes/frame"
	"github.com/wireguardrun/wireguardrun/internal/proc"
	"github.com/wireguardrun/wireguardrun/internal/relay"
)

// strayed is told of stray output: what the server has printed among its messages.
// The first of it is worth a line. silent says that the client has sent nothing
// so far.
func (l *life) strayed(source string, p []byte, silent bool) {
	if l.firstStray || len(bytes.TrimSpace(p)) == 0 {
		return
	}
	l.firstStray = true
	where := map[strayTarget]string{
		strayStderr: "it follows here",
		strayNull:   "it is dropped (--stray=null)",
		strayLog:    "it follows here, line by line",
		strayFile:   "it goes to " + l.cfg.StrayFile,
	}[l.cfg.Stray]
	from := "the server's standard output"
	if source == relay.FromExtra {
		from = "the server's descriptor WIREGUARDRUN_OUT"
	}
	what := "more than messages"
	switch {
	case looksLikeMessage(p):
		what = "what looks like a message and can't pass as one (a log or a part of one, a wrong length, or a print of a server that speaks on descriptor WIREGUARDRUN_OUT)"
	case silent:
		what += " (if the server is to speak first, in a protocol of its own: --framing=raw)"
	}
	l.say.info().Msg(from + " has " + what + ": the client does not get it, " + where)
}

// account says, at the end, what a person should know of the whole session.
// A session in which nothing happened needs no word.
func (l *life) account(o *outlets) {
	if l.relay == nil {
		l.accountUnread()
		return
	}
	s := l.relay.Stats()
	if silentServer(s) {
		if hint := l.silence(s, o); hint != "" {
			withStatus(l.say.warn(), l.ending.status).Str(hintField, hint).
				Msg("the server has ended without sending a message")
		}
	}
	var repaired int64
	for _, n := range s.Repairs {
		repaired += n
	}
	totals := o.totals()
	stdout, extra := totals.Sources[relay.FromStdout], totals.Sources[relay.FromExtra]
	stray := int64(stdout.Bytes + extra.Bytes)
	if s.Side == relay.Aware && totals.Dropped == 0 || stray+repaired+s.Glued+s.Joined+s.TooLong == 0 {
		return
	}
	unanswered := s.Unanswered
	if l.clientGone {
		unanswered = 0 // and no wonder
	}
	event := l.say.info().Int64("messages", s.Outbound.Frames)
	for _, n := range []struct {
		name  string
		count int64
	}{
		{"stray_lines", int64(stdout.Lines + extra.Lines)},
		{"stray_bytes", stray},
		{"repaired", repaired},
		{"glued", s.Glued},
		{"joined", s.Joined},
		{"too_long", s.TooLong},
		{"half", s.Half},
		{"unanswered", unanswered},
		{"dropped_bytes", int64(totals.Dropped)},
	} {
		if n.count > 0 {
			event = event.Int64(n.name, n.count)
		}
	}
	event.Msg("the session in numbers")
}

// silentServer reports whether the client has said something, and the server
// nothing at all, in a protocol of messages.
func silentServer(s relay.Stats) bool {
	return s.Inbound.Bytes > 0 && s.Outbound.Bytes == 0 && s.Lost == 0 && s.Framing != frame.Raw
}

// silence is the hint for a server that has sent no message: what it may have done
// instead. Of one that a signal has ended there may be nothing to say.
func (l *life) silence(s relay.Stats, o *outlets) string {
	failed := l.ending.by == byItself && l.ending.status != (proc.Status{})
	switch {
	case o.lookalike.Load():
		return "its standard error has text that looks like messages: they belong on its standard output"
	case s.ReadNothing && !failed:
		return "it has read nothing of its standard input: does it need a flag to speak over stdin and stdout?"
	case l.ending.by == bySignal:
		return ""
	}
	return "what it has printed on standard error may tell why"
}

// lookUnread finds out what the server has left of the client's input, while
// the wire can be asked.
func (l *life) lookUnread() {
	if pipes.IsTerminal(l.in) || pipes.NeverBlocks(l.in) {
		return
	}
	l.unread, _ = pipes.Unread(l.in)
}

// accountUnread tells of a server that has not found the wire.
func (l *life) accountUnread() {
	if l.unread == 0 || l.clientGone {
		return
	}
	hint := "a server that does not know of the descriptor WIREGUARDRUN_IN, or lost it by a launcher, needs --wire=auto"
	if l.ending.status != (proc.Status{}) {
		hint = "what it has printed on standard error may tell why; " + hint
	}
	withStatus(l.say.warn().Int("bytes", l.unread), l.ending.status).Str(hintField, hint).
		Msg("the server has ended with input of the client unread")
}

// withStatus adds how a server has ended.
func withStatus(e *zerolog.Event, s proc.Status) *zerolog.Event {
	if s.Signal != 0 {
		return e.Int("signal", s.Signal)
	}
	return e.Int("status", s.Code)
}

// looksLikeMessage reports whether p has the mark of a message.
func looksLikeMessage(p []byte) bool {
	return bytes.Contains(p, []byte(`"jsonrpc"`)) || bytes.Contains(p, []byte("Content-Length:"))
}
