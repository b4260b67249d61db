package guard

import (
	"errors"
	"io"

	"github.com/wireguardrun/wireguardrun/internal/pipes"
)

// Claim takes the wire off the standard descriptors of this process: it is
// served by the returned Wire, while descriptor 0 points at the null device
// and descriptor 1 at standard error (at the null device when standard error
// is the wire too, as after 2>&1).
//
// Claim does not fail for want of a system call: a step that fails is undone
// and the wire served in place, and when it can't be undone the wire is served
// from its private duplicate. [Wire.State] tells what was reached and
// [Wire.Err] which steps failed. It refuses with [ErrClaimed], and with
// [ErrHandover] where a parent wireguardrun has left nothing but the diversion
// on the standard descriptors: the wire that it handed down is for [Open].
//
// The Wire owns its descriptors. "defer w.Release()" right after Claim is
// always right.
func Claim(opts ...Option) (*Wire, error) {
	return process.claim(newConfig(opts))
}

// Open returns the wire that a parent wireguardrun handed down, when there is
// one, else it does what [Claim] does; so a server that calls Open works with
// the wrapper and without.
//
// A handed-down wire is used only while its descriptors and the standard ones
// are what the parent said. Children of this process then no longer inherit
// it, the variables that told of it are removed from the environment, and
// [Release] puts both back. Where it can't be used and the standard
// descriptors are only the diversion, Open returns [ErrHandover] and takes
// nothing.
//
// Where the parent has diverted the standard descriptors already, they stay as
// it has set them, before and after Release, and [DivertTo] and [Lifeline] have
// no effect: `wireguardrun --stray` and `--stdin` say it there.
//
// [Release]: Wire.Release
func Open(opts ...Option) (*Wire, error) {
	return process.open(newConfig(opts))
}

// Wire is the client's wire: reads come from the client, writes go to it. Its
// methods may be called from many goroutines; each Write reaches the wire in
// one piece, with no other Write of the Wire inside.
type Wire struct {
	registry *registry
	ends     [2]*end // nil for a direction that was not asked for
	errs     []error
}

// end is one direction of a Wire.
type end struct {
	claim *claim
	conn  *pipes.Conn
	from  *shared // what conn reads or writes; nil for a standard descriptor
}

func newEnd(c *claim) *end {
	h, owner := c.served()
	if owner != nil {
		owner.join()
	}
	return &end{claim: c, conn: pipes.NewConn(h), from: owner}
}

// retire ends the reads and writes of e.
func (e *end) retire() {
	e.conn.Retire(func() {
		if e.from != nil {
			_ = e.from.leave()
		}
	})
}

// Read reads from the client. It blocks until there is data, the client's end
// (io.EOF), or Close or Release, after which it returns an error that wraps
// os.ErrClosed. O_NONBLOCK is never set on the wire, which is shared.
func (w *Wire) Read(p []byte) (int, error) {
	e := w.ends[In]
	if e == nil {
		return 0, &StepError{"read", In, ErrNotClaimed}
	}
	n, err := e.conn.Read(p)
	return n, ioError("read", In, err)
}

// Write writes all of p to the client, or returns how much was written and
// why no more was. A client that is gone gives EPIPE (Unix) or ERROR_NO_DATA
// (Windows), never a signal.
func (w *Wire) Write(p []byte) (int, error) {
	e := w.ends[Out]
	if e == nil {
		return 0, &StepError{"write", Out, ErrNotClaimed}
	}
	n, err := e.conn.Write(p)
	return n, ioError("write", Out, err)
}

func ioError(op string, s Stream, err error) error {
	if err == nil || errors.Is(err, io.EOF) {
		return err
	}
	return &StepError{op, s, err}
}

// In returns the inbound direction alone. Its Close ends reads; the claim
// stays until Release.
func (w *Wire) In() io.ReadCloser { return inbound{w} }

// Out returns the outbound direction alone. Its Close ends writes; the claim
// stays until Release.
func (w *Wire) Out() io.WriteCloser { return outbound{w} }

type inbound struct{ w *Wire }

func (i inbound) Read(p []byte) (int, error) { return i.w.Read(p) }
func (i inbound) Close() error               { return i.w.finish(In) }

type outbound struct{ w *Wire }

func (o outbound) Write(p []byte) (int, error) { return o.w.Write(p) }
func (o outbound) Close() error                { return o.w.finish(Out) }

// finish ends one direction; a second time is no error.
func (w *Wire) finish(s Stream) error {
	if e := w.ends[s]; e != nil {
		e.retire()
	}
	return nil
}

// Descriptor returns the descriptor (on Windows the handle) that carries
// stream s, for handing it to a child process, or ^uintptr(0) when s was not
// claimed. It is borrowed: valid until Release or Close, and not to be closed.
func (w *Wire) Descriptor(s Stream) uintptr {
	if int(s) >= len(w.ends) || w.ends[s] == nil {
		return uintptr(none)
	}
	w.registry.mu.Lock()
	defer w.registry.mu.Unlock()
	h, _ := w.ends[s].claim.served()
	return uintptr(h)
}

// State tells how far the claim of each direction has come.
func (w *Wire) State() Status {
	w.registry.mu.Lock()
	defer w.registry.mu.Unlock()
	var states [2]State
	for s, e := range w.ends {
		if e != nil {
			states[s] = e.claim.state
		}
	}
	return Status{In: states[In], Out: states[Out]}
}

// Err returns the steps of the claim that failed, joined, or nil. The wire is
// served all the same; State tells how. Each is a [*StepError].
func (w *Wire) Err() error { return errors.Join(w.errs...) }

// Release gives the claim back: the standard descriptors are on the wire
// again, reads and writes of the Wire end, and O_NONBLOCK and terminal modes
// of descriptors 0, 1 and 2 are what they were at the claim. A handed-down
// wire goes back to where it was handed, for children or a later Open.
//
// A descriptor that can't be put back keeps its claim, and the Wire goes on
// to serve it ([Stuck]); Release may then be called again. Once everything is
// given back, Release does nothing and returns nil. It never waits for a read
// or a write.
func (w *Wire) Release() error {
	w.registry.mu.Lock()
	defer w.registry.mu.Unlock()
	return w.registry.release(w)
}

// Close ends both directions and then does what Release does, but for a
// handed-down wire, which it closes for good. It makes a Wire the
// io.ReadWriteCloser that protocol libraries take as their transport.
func (w *Wire) Close() error {
	_ = w.finish(In)
	_ = w.finish(Out)
	r := w.registry
	r.mu.Lock()
	defer r.mu.Unlock()
	var errs []error
	for s, e := range w.ends {
		// Once released, the pair may be in use by a later Wire.
		if e != nil && e.claim.handed != nil && e.claim.state != Free {
			errs = append(errs, r.closeHanded(Stream(s)))
			e.claim.handed = nil
		}
	}
	return errors.Join(append(errs, r.release(w))...)
}

var _ io.ReadWriteCloser = (*Wire)(nil)
