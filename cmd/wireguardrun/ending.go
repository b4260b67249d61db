package main

import (
	"os"
	"time"

	"github.com/wireguardrun/wireguardrun/internal/client"
	"github.com/wireguardrun/wireguardrun/internal/proc"
)

// ending is how a server has ended, for who tells of it.
type ending struct {
	start, end time.Time   // of the server
	status     proc.Status // of the server
	by         cause       // 0 while it lives
	sign       client.Sign // of byClient; 0 when the server went with its client
	signal     os.Signal   // the last one that was passed on and ends programs, or nil

	asks  cause // what has asked the server to end
	asked time.Time
}

// ask notes what has asked the server to end. A later cause replaces a signal,
// which a server may ignore, and no other.
func (e *ending) ask(c cause) {
	if e.asks <= bySignal {
		e.asks, e.asked = c, time.Now()
	}
}

// record notes the server's end. gone says that the client is gone too. A signal
// counts as the cause if it was passed on no longer ago than recent.
func (e *ending) record(status proc.Status, gone bool, recent time.Duration) {
	e.end, e.status, e.by = time.Now(), status, e.asks
	if e.by == bySignal && e.end.Sub(e.asked) > recent {
		e.by = 0
	}
	switch {
	case e.by != 0:
	case gone:
		e.by = byClient
	default:
		e.by = byItself
	}
}

// cause is what has led to the end of a server.
type cause uint8

const (
	byItself cause = iota + 1 // nothing of ours
	bySignal                  // one that ends programs was passed on
	byClient                  // the client is gone
	byLimit                   // of --eof-timeout
	byWire                    // it has failed
)

func (c cause) String() string {
	switch c {
	case byItself:
		return "server"
	case bySignal:
		return "signal"
	case byClient:
		return "client"
	case byLimit:
		return "eof-timeout"
	case byWire:
		return "wire"
	default:
		return "none"
	}
}
