// Package relay copies between the client's wire and the pipes of a server
// that may know nothing of wireguardrun: it lets the server's frames through
// and diverts the rest.
//
// A server may have an extra pair of pipes beside those on its 0 and 1. Then the
// client's bytes go to both inputs until the server shows on which pair it speaks
// (see [Side]); the other pair's output is stray from then on. Each direction has
// goroutines of its own, and memory is bounded whatever either side sends.
package relay

import (
	"errors"
	"io"
	"os"
	"slices"
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

func (s Side) String() string {
	switch s {
	case Unmodified:
		return "unmodified"
	case Aware:
		return "aware"
	default:
		return "undecided"
	}
}

// Sources of stray bytes: the server's standard output, and the extra pair.
const (
	FromStdout = "stdout"
	FromExtra  = "extra"
)

// Options say what is copied where. Stray and Note are called one at a time, with
// the relay locked: of its methods they may call Inbound only.
type Options struct {
	// Wire is the client's, and WireOut the descriptor behind its writes, or
	// None. They are borrowed; WireOut only by Start.
	Wire    io.ReadWriter
	WireOut pipes.Handle
	// Stdin and Stdout are our ends of the server's 0 and 1; In and Out those
	// of the extra pair, or None. They are owned by the relay.
	Stdin, Stdout, In, Out pipes.Handle
	// EndStdin ends the standard input of an aware server, which otherwise stays
	// open without data.
	EndStdin bool

	Frame frame.Options
	// Stray takes what is no frame; source is FromStdout or FromExtra. It must
	// not wait and must not keep p.
	Stray func(source string, p []byte)
	// Pace, unless nil, may wait for room for n bytes of the output that has
	// no frames, before they are given to Stray.
	Pace func(n int)
	// Note is told what a person should know.
	Note func(frame.Note)
	// Failed is told that a direction of the wire has failed, other than by a
	// client that is gone; at most once for each direction.
	Failed func(error)
}

// Relay copies for one session. Its methods may be called from any goroutine.
type Relay struct {
	o Options

	mu           sync.Mutex // conversation, scanners and side
	heard        sync.Cond  // signalled when an output has taken what was read, or the side is decided
	conversation *frame.Conversation
	side         Side
	unknown      bool // it has been noted that the client's protocol is unknown

	stdin, in *input // in is nil when there is no extra pair
	stdout    *output
	out       *output       // nil when there is no extra pair
	inbound   atomic.Uint64 // bytes from the client
	outbound  atomic.Int64  // bytes that the client has taken
	lost      atomic.Int64  // bytes for a client that takes none any more
	ended     chan struct{} // closed when the client's bytes have ended

	looked      sync.Once
	readNothing atomic.Bool

	wire  sync.Mutex   // one writer at a time
	pages pipes.Handle // where the kernel can move what an aware server writes; owned; None if it can't
	dead  atomic.Bool  // nobody reads the wire, or it fails
	busy  atomic.Bool  // a write to the wire is under way
	moved atomic.Int64 // changes with what is read from the server or written to the client
}

// Start starts to copy. [Relay.Drain] ends it.
func Start(o Options) *Relay {
	r := &Relay{o: o, conversation: frame.NewConversation(o.Frame), ended: make(chan struct{}), pages: pipes.None}
	r.heard.L = &r.mu
	r.stdin = newInput(o.Stdin)
	r.stdout = r.newOutput(o.Stdout, Unmodified, FromStdout)
	if o.In != pipes.None {
		r.in = newInput(o.In)
		r.stdin.asked, r.in.asked = true, true
		r.out = r.newOutput(o.Out, Aware, FromExtra)
		if o.WireOut != pipes.None && pipes.CanSplice(o.Out, o.WireOut) {
			r.pages, _ = pipes.Duplicate(o.WireOut)
		}
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

// Side returns the side on which the server speaks, if it is decided.
func (r *Relay) Side() Side {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.side
}

// Inbound returns how many bytes have come from the client.
func (r *Relay) Inbound() uint64 { return r.inbound.Load() }

// InputEnded is closed when the client's bytes have ended.
func (r *Relay) InputEnded() <-chan struct{} { return r.ended }

func (r *Relay) pumpInbound() {
	defer close(r.ended)
	defer r.EndInput()
	buf := make([]byte, 64<<10)
	framed := false
	for {
		n, err := r.o.Wire.Read(buf)
		if n > 0 {
			r.inbound.Add(uint64(n))
			if !framed || r.Side() != Aware { // else nobody asks what was said
				r.mu.Lock()
				r.conversation.Inbound(buf[:n])
				_, known := r.conversation.Framing()
				r.mu.Unlock()
				if known && !framed {
					framed = true
					r.lookAgain()
				}
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
// the client's messages look. The client does not wait for it. It is not left to
// the timers, which whoever looks at other bytes may be about to stop.
func (r *Relay) lookAgain() {
	go r.stdout.tick()
	if r.out != nil {
		go r.out.tick()
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
		r.stdin.put(p, r.settle)
		r.in.put(p, r.settle)
	}
}

// settle decides, if it can, while one of the inputs is full: for the pair whose
// input is read all the same, or for standard output if a frame has come there.
func (r *Relay) settle() {
	r.mu.Lock()
	defer r.mu.Unlock()
	switch {
	case r.in.keepsUp():
		r.decideLocked(Aware)
	case r.stdin.keepsUp(), r.stdout.frames > 0:
		r.decideLocked(Unmodified)
	}
}

// Ended reports whether nobody is left who could write to the client.
func (r *Relay) Ended() bool {
	return isClosed(r.stdout.done) && (r.out == nil || isClosed(r.out.done))
}

// EndInput ends the server's input once what is queued has been read. Before the
// client's end, where there are no signals, that asks a server to end.
func (r *Relay) EndInput() {
	r.lookAtReading(true)
	r.stdin.end()
	if r.in != nil {
		r.in.end()
	}
}

// decideLocked settles the side, once. What the loser prints is stray from now
// on, and its input stays open without data until the client's end.
func (r *Relay) decideLocked(side Side) {
	if r.side != Undecided {
		return
	}
	r.side = side
	r.heard.Broadcast()
	r.stdin.forget()
	r.in.forget()
	if side == Unmodified {
		r.out.surrender()
		r.in.mute()
		if r.stdout.early.waits() {
			go r.stdout.tick()
		}
		return
	}
	r.stdout.surrender()
	r.stdin.mute()
	if r.o.EndStdin {
		r.stdin.end()
	}
}

// write puts p on the wire. It waits for the client, and only the server's own
// outputs wait with it.
func (r *Relay) write(p []byte) {
	if len(p) == 0 {
		return
	}
	r.wire.Lock()
	defer r.wire.Unlock()
	if r.dead.Load() {
		r.lost.Add(int64(len(p)))
		return
	}
	r.busy.Store(true)
	n, err := r.o.Wire.Write(p)
	r.busy.Store(false)
	r.outbound.Add(int64(n))
	r.lost.Add(int64(len(p) - n))
	r.moved.Add(1)
	if err == nil {
		return
	}
	r.dead.Store(true)
	if !pipes.IsGone(err) && !errors.Is(err, os.ErrClosed) {
		r.o.Failed(err)
	}
}

// Drain is for the time after the server's end. It delivers what the server has
// written, however slowly the client reads, and then stops. Other processes that
// keep the pipes get quiet without a byte, and limit in all.
func (r *Relay) Drain(quiet, limit time.Duration) {
	r.lookAtReading(false)
	outputs := []*output{r.stdout}
	if r.out != nil {
		outputs = append(outputs, r.out)
	}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		for _, o := range outputs {
			<-o.done
		}
	}()
	for _, o := range outputs {
		o.mark()
	}
	// Time goes by in slices, so that a stop of this process or of the whole
	// machine counts as one slice, and never as quiet.
	slice := max(quiet/15, time.Millisecond)
	seen := r.moved.Load()
	for still, spent := time.Duration(0), time.Duration(0); still < quiet && spent < limit; {
		select {
		case <-ended:
			still = quiet
		case <-time.After(slice):
			still, spent = still+slice, spent+slice
			if now := r.moved.Load(); now != seen {
				seen, still = now, 0
			}
			if r.busy.Load() || slices.ContainsFunc(outputs, (*output).owes) {
				still, spent = 0, 0 // the client is slow
			}
		}
	}
	for _, o := range outputs {
		o.stop()
	}
	<-ended
	if r.pages != pipes.None {
		_ = pipes.Close(r.pages)
		r.pages = pipes.None
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
