package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"syscall"
	"time"

	"github.com/wireguardrun/wireguardrun/internal/pipes/frame"
	"github.com/wireguardrun/wireguardrun/internal/proc"
	"github.com/wireguardrun/wireguardrun/internal/relay"
)

// summary is what --summary writes: one object, with a line feed behind it.
// What is not known is left out: with --wire=fds nothing of the wire is.
type summary struct {
	Version string `json:"version"`
	Command string `json:"command"` // its first word: the others may be secrets
	Wire    string `json:"wire"`    // the flag

	*passed

	// What the server side has printed that is not on the wire, by where it
	// was printed; of stdout and stderr only what went through our hands.
	Stray   map[string]strayCount `json:"stray"`
	Dropped uint64                `json:"dropped"` // bytes of it that reached nobody

	Exit    exitStatus `json:"exit"`
	EndedBy string     `json:"ended_by"` // what has led to the server's end: server, signal, client, eof-timeout or wire
	Start   time.Time  `json:"start"`
	End     time.Time  `json:"end"`
	Seconds float64    `json:"seconds"`
}

// passed is what the relay has seen.
type passed struct {
	Server  string  `json:"server"` // "unmodified", "aware", or "undecided" while it has answered nothing
	Framing string  `json:"framing"`
	In      traffic `json:"in"`   // client to server
	Out     traffic `json:"out"`  // server to client
	Lost    int64   `json:"lost"` // bytes to a client that was gone

	Repairs map[string]int64 `json:"repairs"` // messages put right, by what was wrong
	Glued   int64            `json:"glued"`   // messages that passed with noise on their line
	Joined  int64            `json:"joined"`  // messages that passed as one line of several
	Copies  int64            `json:"copies"`  // logged messages that were diverted
	TooLong int64            `json:"too_long"`
	Half    int64            `json:"half"` // messages that the server's end has cut off

	Unanswered *int64 `json:"unanswered,omitempty"` // requests of the client
}

// traffic is one direction. Bytes that pass unread, those of an aware server,
// count in no frame.
type traffic struct {
	Frames int64 `json:"frames"`
	Bytes  int64 `json:"bytes"`
}

type strayCount struct {
	Bytes uint64 `json:"bytes"`
	Lines uint64 `json:"lines"`
}

type exitStatus struct {
	Code   int `json:"code"`             // ours
	Signal int `json:"signal,omitempty"` // that ended the server
}

// newSummary is the summary of a run that has just ended.
func (l *life) newSummary(began time.Time, status proc.Status, o *outlets) summary {
	cfg, r, now := l.cfg, l.relay, time.Now()
	totals := o.totals()
	s := summary{
		Version: programVersion(), Command: cfg.Argv[0], Wire: string(cfg.Wire),
		Stray: map[string]strayCount{}, Dropped: totals.Dropped,
		Exit: exitStatus{childExitCode(status.Code, status.Signal), status.Signal}, EndedBy: l.ending.by.String(),
		Start: began.UTC(), End: now.UTC(), Seconds: now.Sub(began).Seconds(),
	}
	if r != nil {
		s.passed = newPassed(r.Stats())
		s.Stray[relay.FromStdout], s.Stray[relay.FromExtra] = strayCount{}, strayCount{}
	}
	for source, c := range totals.Sources {
		s.Stray[source] = strayCount(c)
	}
	return s
}

func newPassed(s relay.Stats) *passed {
	p := &passed{
		Server: s.Side.String(), Framing: s.Framing.String(),
		In: traffic(s.Inbound), Out: traffic(s.Outbound), Lost: s.Lost,
		Repairs: map[string]int64{},
		Glued:   s.Glued, Joined: s.Joined, Copies: s.Copies, TooLong: s.TooLong, Half: s.Half,
	}
	if s.Unanswered >= 0 {
		p.Unanswered = &s.Unanswered
	}
	for kind, n := range s.Repairs {
		if n > 0 {
			p.Repairs[frame.Repair(kind).String()] = n
		}
	}
	return p
}

// write writes the summary to w.
func (s summary) write(w io.Writer) error {
	text, err := json.Marshal(s)
	if err == nil {
		_, err = w.Write(append(text, '\n'))
	}
	if err != nil {
		return fmt.Errorf("summary: %w", err)
	}
	return nil
}

// openSummary opens the file of --summary, to which others may append as well.
// It is opened before the server is started, so that a path that can't be used
// is told while somebody looks. The result is nil where no file is asked for.
func openSummary(path string) (*os.File, error) {
	if path == "" || path == onStderr {
		return nil, nil
	}
	if err := notTheWire("--summary", path); err != nil {
		return nil, err
	}
	// O_NONBLOCK: a named pipe that nobody reads is an error, not a wait.
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_APPEND|os.O_CREATE|syscall.O_NONBLOCK, 0o600)
	if err != nil {
		return nil, fileFailure("--summary", err)
	}
	return f, nil
}

// summaryLimit is how long a named pipe may take for a summary.
const summaryLimit = time.Second

// closeSummary writes s to f and closes it.
func closeSummary(f *os.File, s summary) error {
	_ = f.SetWriteDeadline(time.Now().Add(summaryLimit)) // a file has none
	return errors.Join(s.write(f), f.Close())
}
