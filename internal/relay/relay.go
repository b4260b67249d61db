// Package relay copies between the client's wire and the pipes of a server
// that may know nothing of wireguardrun: it lets the server's frames through
// and diverts the rest.
package relay

import (
	"errors"
	"io"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"github.com/wireguardrun/wireguardrun/internal/pipes"
	"github.com/wireguardrun/wireguardrun/internal/pipes/frame"
)

// Side is the pair of descriptors on which the server turns out to speak.
type Side uint8

const (
	Undecided  Side = iota
	Unmodified      // 0 and 1
	Aware           // the extra pair
)

// Options say what is copied where.
type Options struct {
	// Wire is the client's. It is borrowed.
	Wire io.ReadWriter
	// Stdin and Stdout are our ends of the server's 0 and 1; In and Out those
	// of the extra pair, or None. They are owned by the relay.
	Stdin, Stdout, In, Out pipes.Handle

	Frame frame.Options
	// Stray takes what is no frame; it does not wait and does not keep p.
	Stray func(p []byte)
	// Note is told what is worth telling.
	Note func(frame.Note)
	// Failed is told that the wire fails, other than by a client that is gone.
	Failed func(error)
}

// Relay is a session's copying.
type Relay struct {
	o Options

	mu           sync.Mutex // conversation, scanners and side
	conversation *frame.Conversation
	side         Side
	unknown      bool // that the client's protocol is unknown has been said

	stdin, in *input // in is nil when there is no extra pair
	stdout    *output
	out       *output // nil when there is no extra pair
	inbound   atomic.Uint64
	ended     chan struct{} // closed when the client's bytes have ended

	wire  sync.Mutex  // one writer at a time
	dead  atomic.Bool // nobody reads the wire, or it fails
	busy  atomic.Bool // a write to the wire is under way
	moved atomic.Int64
}

// Start starts to copy.
func Start(o Options) *Relay {
	r := &Relay{o: o, conversation: frame.NewConversation(o.Frame), ended: make(chan struct{})}
	r.stdin = newInput(o.Stdin)
	r.stdout = r.newOutput(o.Stdout, Unmodified)
	if o.In != pipes.None {
		r.in = newInput(o.In)
		r.out = r.newOutput(o.Out, Aware)
	} else {
		r.side = Unmodified
	}
	go r.pumpInbound()
	go r.stdout.run()
	if r.out != nil {
		go r.out.run()
	}
	return r
}

// Side returns what has been decided.
func (r *Relay) Side() Side {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.side
}

// Inbound returns how many bytes have come from the client.
func (r *Relay) Inbound() uint64 { return r.inbound.Load() }

func (r *Relay) pumpInbound() {
	defer close(r.ended)
	defer r.endInputs()
	buf := make([]byte, 64<<10)
	framed := false
	for {
		n, err := r.o.Wire.Read(buf)
		if n > 0 {
			r.inbound.Add(uint64(n))
			r.mu.Lock()
			r.conversation.Inbound(buf[:n])
			_, known := r.conversation.Framing()
			r.mu.Unlock()
			if known && !framed {
				framed = true
				r.lookAgain()
			}
			r.deliver(buf[:n])
		}
		if err != nil {
			if !errors.Is(err, io.EOF) && !errors.Is(err, os.ErrClosed) && !pipes.IsGone(err) {
				r.o.Failed(err)
			}
			return
		}
	}
}

// lookAgain has the scanners look at what they hold, now that it is known how
// the client's messages look.
func (r *Relay) lookAgain() {
	r.stdout.timer.Reset(0)
	if r.out != nil {
		r.out.timer.Reset(0)
	}
}

// deliver gives p to both inputs until it is decided which one counts. The
// client is held back only if the server reads neither.
func (r *Relay) deliver(p []byte) {
	switch r.Side() {
	case Unmodified:
		r.stdin.write(p)
	case Aware:
		r.in.write(p)
	default:
		r.stdin.put(p, func() bool { return r.settleFull(Aware, r.in) })
		r.in.put(p, func() bool { return r.settleFull(Unmodified, r.stdin) })
	}
}

// settleFull is asked when one input is full: the side of other wins if that
// one is read.
func (r *Relay) settleFull(side Side, other *input) bool {
	if !other.drained() {
		return false
	}
	r.decide(side)
	return true
}

func (r *Relay) endInputs() {
	r.stdin.end()
	if r.in != nil {
		r.in.end()
	}
}

// decide settles the side, once. What the loser prints is stray from now on,
// and its input stays open without data until the client's end.
func (r *Relay) decide(side Side) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.decideLocked(side)
}

func (r *Relay) decideLocked(side Side) {
	if r.side != Undecided {
		return
	}
	r.side = side
	if side == Aware {
		go r.stdin.mute()
	} else {
		go r.in.mute()
	}
}

// write puts p on the wire. It waits for the client, and only the server's own
// outputs wait with it.
func (r *Relay) write(p []byte) {
	if len(p) == 0 || r.dead.Load() {
		return
	}
	r.wire.Lock()
	defer r.wire.Unlock()
	r.busy.Store(true)
	_, err := r.o.Wire.Write(p)
	r.busy.Store(false)
	r.moved.Store(time.Now().UnixNano())
	if err == nil {
		return
	}
	r.dead.Store(true)
	if !pipes.IsGone(err) && !errors.Is(err, os.ErrClosed) {
		r.o.Failed(err)
	}
}

// Drain delivers what the server has written before its end, however slowly
// the client reads, and stops. Other processes that keep the pipes get quiet
// without a byte, and limit in all.
func (r *Relay) Drain(quiet, limit time.Duration) {
	outputs := []*output{r.stdout}
	if r.out != nil {
		outputs = append(outputs, r.out)
	}
	r.moved.Store(time.Now().UnixNano())
	end := time.Now().Add(limit)
	const look = 20 * time.Millisecond
	for _, o := range outputs {
		for !isClosed(o.done) {
			now := time.Now()
			switch {
			case r.busy.Load():
				end = now.Add(limit) // the client is slow
			case now.Sub(time.Unix(0, r.moved.Load())) >= quiet, now.After(end):
				o.stop()
			}
			select {
			case <-o.done:
			case <-time.After(look):
			}
		}
	}
	r.stdin.end()
	if r.in != nil {
		r.in.end()
	}
}

func isClosed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}
