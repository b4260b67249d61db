//go:build unix

package main

import (
	"syscall"
	"testing"
	"time"

	"github.com/wireguardrun/wireguardrun/internal/pipes"
	"github.com/wireguardrun/wireguardrun/internal/proc"
)

// A stop is ours when we have passed one on, and not long ago.
func TestStopOfTheServerIsOurs(t *testing.T) {
	now := time.Now()
	none, recent, old := time.Time{}, now.Add(-time.Second), now.Add(-time.Minute)
	for _, test := range []struct {
		name     string
		sig      syscall.Signal
		asked    time.Time
		terminal pipes.Handle
		want     bool
	}{
		{"its answer", syscall.SIGTSTP, recent, pipes.None, true},
		{"its answer, after it has put things in order", syscall.SIGSTOP, recent, pipes.None, true},
		{"nobody has asked", syscall.SIGTSTP, none, pipes.None, false},
		{"it was ignored, and somebody stops the server now", syscall.SIGSTOP, old, pipes.None, false},
		{"it uses the terminal from the background", syscall.SIGTTIN, recent, pipes.None, false},
		{"its terminal is ours", syscall.SIGTSTP, none, 0, true},
		{"its terminal is ours, and it is in the background", syscall.SIGTTIN, none, 0, true},
	} {
		l := &life{terminal: test.terminal, stopAsked: test.asked}
		if got := l.answers(int(test.sig), now); got != test.want {
			t.Errorf("%s: %t, want %t", test.name, got, test.want)
		}
	}
}

// Who has ended a server is what was asked last, unless it was a signal of long
// ago.
func TestWhoEndsTheServer(t *testing.T) {
	const recent = time.Minute
	for _, test := range []struct {
		name string
		asks []cause
		gone bool
		late bool
		want cause
	}{
		{"nobody", nil, false, false, byItself},
		{"it went with its client", nil, true, false, byClient},
		{"a signal", []cause{bySignal}, false, false, bySignal},
		{"a client that sends a signal and goes", []cause{bySignal}, true, false, bySignal},
		{"a signal that it heeds in its own way", []cause{bySignal}, false, true, byItself},
		{"a signal of long ago, then its client", []cause{bySignal}, true, true, byClient},
		{"a signal, then the limit", []cause{bySignal, byLimit}, false, true, byLimit},
		{"the client, then a signal", []cause{byClient, bySignal}, true, false, byClient},
		{"the wire", []cause{byWire}, false, false, byWire},
	} {
		var e ending
		for _, c := range test.asks {
			e.ask(c)
		}
		if test.late {
			e.asked = e.asked.Add(-2 * recent)
		}
		e.record(proc.Status{Code: 4}, test.gone, recent)
		if e.by != test.want || e.status.Code != 4 || e.end.IsZero() {
			t.Errorf("%s: %v at %v, %+v, want %v", test.name, e.by, e.end, e.status, test.want)
		}
	}
}
