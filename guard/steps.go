package guard

import (
	"errors"

	"github.com/wireguardrun/wireguardrun/internal/pipes"
)

// claim is the claim of one stream. Its methods are called under the lock of
// the registry.
type claim struct {
	sys    *system
	stream Stream
	state  State

	// saved is the private duplicate of the standard descriptor, which the
	// claim owns: made before anything is moved, and never given up while
	// the standard descriptor may need it. nil in the states Free and
	// InPlace, and for a stream that a parent diverted.
	saved *shared

	// hold is the write end of a lifeline, closed when the claim ends.
	hold handle

	// handed is the wire when a parent handed it down, else nil. It belongs
	// to the registry.
	handed *shared

	errs []error // steps of the take or of the last giveBack that failed, in order
}

// served returns the handle that carries the wire, and its owner unless that
// is the standard descriptor itself.
func (c *claim) served() (handle, *shared) {
	switch {
	case c.handed != nil:
		return c.handed.h, c.handed
	case c.saved != nil:
		return c.saved.h, c.saved
	default:
		return c.sys.standard(c.stream), nil
	}
}

// take claims the stream. It always ends with the wire served and the claim
// held: Diverted, or InPlace when a step failed and was undone, or
// RolledForward when it could not be undone. The choices of diversion are
// tried in order.
func (c *claim) take(choices []diversion) {
	saved, err := c.sys.duplicate(c.stream)
	if err != nil {
		c.failed("duplicate", err)
		c.to(InPlace)
		return
	}
	c.saved = newShared(saved, c.closePrivate)
	c.to(Duplicated)

	d, err := c.openFirst(choices)
	if err != nil {
		c.leaveInPlace()
		return
	}
	if err := c.sys.divert(c.stream, d); err != nil {
		c.failed("divert", err)
		if c.locate(d) != onDiversion {
			c.rollBack(d)
			c.discard(d)
			return
		}
	}
	if err := c.discard(d); err != nil {
		c.rollBack(none)
		return
	}
	c.to(Diverted)
}

func (c *claim) openFirst(choices []diversion) (d handle, err error) {
	for _, choice := range choices {
		if d, c.hold, err = c.sys.open(choice); err == nil {
			return d, nil
		}
		c.hold = none
		c.failed("open diversion", err)
	}
	return none, err
}

// rollBack puts the standard descriptor back on the wire, or rolls forward
// when that fails: the private duplicate still has the wire. d is the
// diversion while it is open; it is borrowed.
func (c *claim) rollBack(d handle) {
	if c.locate(d) != onWire {
		if err := c.sys.restore(c.stream, c.saved.h); err != nil {
			c.failed("roll back", err)
			if c.settle(d) != onWire {
				c.to(RolledForward)
				return
			}
		}
	}
	c.leaveInPlace()
}

// leaveInPlace ends a claim's preparations: the standard descriptor is on the
// wire and nothing of ours is left open.
func (c *claim) leaveInPlace() {
	c.endPrivate()
	c.to(InPlace)
}

// giveBack ends the claim: the standard descriptor is put back on the wire. If
// that fails the claim is kept, and so is the private duplicate. ended runs
// when it is certain that the claim ends.
func (c *claim) giveBack(ended func()) error {
	c.errs = nil // the Wire has those of take
	if c.saved == nil {
		c.to(Free)
		ended()
		return nil
	}
	if err := c.sys.restore(c.stream, c.saved.h); err != nil {
		if c.settle(none) != onWire {
			c.failed("restore", err)
			c.to(Stuck)
			return errors.Join(c.errs...)
		}
	}
	c.to(Free)
	ended()
	c.endPrivate()
	return errors.Join(c.errs...)
}

// settleTries is how often settle tries each way before it gives up.
const settleTries = 3

// settle finds out where the standard descriptor is after a restore that
// reported a failure, and sees to it that it is not a hole: the next file that
// the process opens would take that number, and every stray print would end
// in it. The wire is tried first, then the diversion, which is opened anew
// when d is none.
func (c *claim) settle(d handle) place {
	for range settleTries {
		switch at := c.locate(d); at {
		case onWire, onDiversion, elsewhere:
			return at
		}
		if c.sys.restore(c.stream, c.saved.h) == nil {
			return onWire
		}
		if c.divertAgain(d) {
			return onDiversion
		}
	}
	return unknown
}

func (c *claim) divertAgain(d handle) bool {
	if d == none {
		var err error
		if d, _, err = c.sys.open(diversion{kind: toNull}); err != nil {
			return false
		}
		defer c.discard(d)
	}
	return c.sys.divert(c.stream, d) == nil
}

// place is where a standard descriptor is found.
type place uint8

const (
	unknown place = iota
	onWire
	onDiversion
	elsewhere // open, but neither; the diversion too when it is not open to compare with
	hole      // closed
)

// locate observes where the standard descriptor is, since the return code of
// a dup2 can't be believed once it is an error: old C runtimes close the
// target before they fail. d is the diversion, or none when it is not open.
func (c *claim) locate(d handle) place {
	wire := c.sys.compare(c.stream, c.saved.h)
	div := pipes.Different
	if d != none {
		div = c.sys.compare(c.stream, d)
	}
	switch {
	case wire == pipes.Closed || div == pipes.Closed:
		return hole
	case wire == pipes.Unknown || div == pipes.Unknown:
		return unknown
	case wire == pipes.Different && div == pipes.Different:
		return elsewhere
	case wire == pipes.Different:
		return onDiversion
	case div == pipes.Different && (wire == pipes.Same || d != none):
		return onWire
	default:
		// Wire and diversion are one object, or can't be told apart.
		return unknown
	}
}

// discard closes the diversion's own descriptor d, which the standard
// descriptor has taken over. A failure counts as a failed step even when
// trying again has helped.
func (c *claim) discard(d handle) error {
	err := c.sys.close(d)
	if err != nil {
		c.failed("close diversion", err)
		_ = c.closeAgain(d)
	}
	return err
}

// closePrivate closes the private duplicate. It may run on any goroutine.
func (c *claim) closePrivate(h handle) error {
	err := c.sys.close(h)
	if err != nil && c.closeAgain(h) {
		return nil
	}
	return err
}

// closeAgain closes h, whose close has failed, when it is certainly still the
// object that the standard descriptor names; otherwise the number may be a
// stranger's by now.
func (c *claim) closeAgain(h handle) bool {
	return c.sys.compare(c.stream, h) == pipes.Same && c.sys.close(h) == nil
}

// endPrivate gives up what only a held claim needs.
func (c *claim) endPrivate() {
	if c.hold != none {
		if err := c.sys.close(c.hold); err != nil {
			c.failed("close lifeline", err)
		}
		c.hold = none
	}
	if err := c.saved.leave(); err != nil {
		c.failed("close private duplicate", err)
	}
	c.saved = nil
}

func (c *claim) failed(op string, err error) {
	c.errs = append(c.errs, &StepError{op, c.stream, err})
}
