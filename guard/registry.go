package guard

import (
	"errors"
	"fmt"
	"sync"

	"github.com/wireguardrun/wireguardrun/internal/handover"
	"github.com/wireguardrun/wireguardrun/internal/pipes"
)

// registry holds the claims of one process: at most one for each stream. Its
// lock is held for every transition, never while the wire is read or written.
type registry struct {
	sys system

	mu     sync.Mutex
	held   [2]*claim
	handed *handed // nil when there is none or it is not in use
	modes  [3]savedModes

	announced bool // to the parent: it eats one such byte, and passes a second
}

type savedModes struct {
	pipes.Modes
	known bool
}

// process is the registry of the standard descriptors that this process
// really has.
var process = &registry{sys: realSystem()}

// claim takes the streams that cfg names off the standard descriptors. It
// refuses before it touches anything, so there is nothing to give back.
func (r *registry) claim(cfg config) (*Wire, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	h, err := r.admit(cfg)
	switch {
	case err != nil:
		return nil, err
	case h != nil && h.record.Mode == handover.Fds:
		return nil, fmt.Errorf("%w by Claim: the standard descriptors are only the diversion; call Open", ErrHandover)
	}
	return r.take(cfg, nil), nil
}

// open takes the streams that cfg names from a parent that handed the wire
// down, else off the standard descriptors.
func (r *registry) open(cfg config) (*Wire, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	h, err := r.admit(cfg)
	switch {
	case err != nil:
		return nil, err
	case h == nil:
		return r.take(cfg, nil), nil
	}
	for s, end := range h.ends {
		if cfg.only[s] && end == nil {
			return nil, fmt.Errorf("%w: %s was closed in this process", ErrHandover, Stream(s))
		}
	}
	if err := r.adopt(h); err != nil {
		return nil, err
	}
	w := r.take(cfg, h)
	if h.record.Mode == handover.Auto && w.ends[Out] != nil && !r.announced {
		r.announced = true
		// The one byte that tells the parent which pair this server uses;
		// the parent eats it. If it is gone, the first read or write says so.
		_, _ = w.ends[Out].conn.Write([]byte("\n"))
	}
	return w, nil
}

// admit refuses what can't be claimed, and returns the wire that a parent
// handed down, if any.
func (r *registry) admit(cfg config) (*handed, error) {
	for s, wanted := range cfg.only {
		if wanted && r.held[s] != nil {
			return nil, fmt.Errorf("%w (%s)", ErrClaimed, Stream(s))
		}
	}
	return r.handedDown()
}

// take runs the steps of every wanted stream, in before out. h is the wire
// when it was handed down, else nil.
func (r *registry) take(cfg config, h *handed) *Wire {
	if r.held == [2]*claim{} {
		r.rememberModes()
	}
	w := &Wire{registry: r}
	for _, s := range []Stream{In, Out} {
		if !cfg.only[s] {
			continue
		}
		c := &claim{sys: &r.sys, stream: s, hold: none}
		if h != nil {
			c.handed = h.ends[s]
		}
		if h != nil && h.record.Mode == handover.Fds {
			c.to(Diverted) // by the parent
		} else {
			c.take(r.choices(s, cfg))
		}
		r.held[s] = c
		w.ends[s] = newEnd(c)
		w.errs = append(w.errs, c.errs...)
	}
	return w
}

// choices lists the diversions of stream s in the order to try them.
func (r *registry) choices(s Stream, cfg config) []diversion {
	null := diversion{kind: toNull}
	switch {
	case s == In && cfg.lifeline:
		return []diversion{{kind: toLifeline}, null}
	case s == In:
		return []diversion{null}
	}
	out := diversion{kind: toStderr}
	if cfg.divertOut != nil {
		// Fd also makes the file block, as whoever prints expects.
		out = diversion{kind: toFile, file: handle(cfg.divertOut.Fd())}
	}
	if r.sys.reachesWire(out) {
		return []diversion{null}
	}
	return []diversion{out, null}
}

// release gives the claims of w back, out before in. What can't be given back
// stays held, and w with it.
func (r *registry) release(w *Wire) error {
	var errs []error
	for _, s := range []Stream{Out, In} {
		e := w.ends[s]
		if e == nil || e.claim.state == Free {
			continue
		}
		errs = append(errs, e.claim.giveBack(e.retire))
		if e.claim.state == Free {
			r.held[s] = nil
		}
	}
	if r.held == [2]*claim{} {
		errs = append(errs, r.reinstateModes(), r.disown())
	}
	return errors.Join(errs...)
}

// rememberModes notes what a claim's time must not change. A descriptor that
// is closed has no modes, which is no failure.
func (r *registry) rememberModes() {
	for fd := range r.modes {
		m, err := r.sys.readModes(fd)
		r.modes[fd] = savedModes{m, err == nil}
	}
}

// reinstateModes runs once after the last claim has ended.
func (r *registry) reinstateModes() error {
	var errs []error
	for fd, m := range r.modes {
		if !m.known {
			continue
		}
		if err := r.sys.reinstate(fd, m.Modes); err != nil {
			errs = append(errs, fmt.Errorf("guard: descriptor %d: restore flags and terminal modes: %w", fd, err))
		}
	}
	r.modes = [3]savedModes{}
	return errors.Join(errs...)
}
