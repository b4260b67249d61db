package guard

import (
	"errors"
	"fmt"

	"github.com/wireguardrun/wireguardrun/internal/handover"
)

// handed is the wire that a parent wireguardrun handed down to this process.
// It stays with the registry until both directions have been given back.
type handed struct {
	record handover.Record
	ends   [2]*shared // nil once closed for good
}

// handedDown returns the wire that this process was handed: the one in use, or
// the one that the environment tells of. It returns nil when there is none, or
// none that is meant for this process, and ErrHandover when there is one that
// can't be used although nothing else carries the wire.
func (r *registry) handedDown() (*handed, error) {
	if r.handed != nil {
		return r.handed, nil
	}
	rec, found, err := handover.FromEnv()
	if !found {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("%w: %w; the wrapper and the server may be of different versions", ErrHandover, err)
	}
	stdin, stdout := r.sys.standard(In), r.sys.standard(Out)
	if err := rec.Check(stdin, stdout); err != nil {
		if rec.Mode == handover.Auto || rec.StandardReplaced(stdin, stdout) {
			// 0 and 1 carry the wire too, or belong to another session:
			// this process was started by a server, for its own use.
			return nil, nil
		}
		return nil, fmt.Errorf("%w: %w; start the server without a launcher in between, or with `wireguardrun attach` from inside it", ErrHandover, err)
	}
	return &handed{record: rec, ends: [2]*shared{
		newShared(rec.In.Handle, r.sys.close),
		newShared(rec.Out.Handle, r.sys.close),
	}}, nil
}

// adopt makes h the wire of this process alone: children inherit neither the
// descriptors nor the variables that tell of them. A failure takes nothing.
func (r *registry) adopt(h *handed) error {
	if r.handed != nil {
		return nil
	}
	if err := r.inherit(h, false); err != nil {
		return fmt.Errorf("%w: %w", ErrHandover, errors.Join(err, r.inherit(h, true)))
	}
	handover.Clear()
	r.handed = h
	return nil
}

// disown is the opposite of adopt. A wire of which one direction was closed
// stays: nothing could be told of it that would hold.
func (r *registry) disown() error {
	h := r.handed
	if h == nil || h.ends[In] == nil || h.ends[Out] == nil {
		return nil
	}
	r.handed = nil
	h.record.Restore()
	return r.inherit(h, true)
}

// inherit says whether children inherit the ends of h. It tries both.
func (r *registry) inherit(h *handed, on bool) error {
	var errs []error
	for s, end := range h.ends {
		if err := r.sys.inherit(end.h, on); err != nil {
			errs = append(errs, &StepError{"set inheritance", Stream(s), err})
		}
	}
	return errors.Join(errs...)
}

// closeHanded closes direction s of a handed-down wire for good.
func (r *registry) closeHanded(s Stream) error {
	if r.handed == nil || r.handed.ends[s] == nil {
		return nil
	}
	err := r.handed.ends[s].leave()
	r.handed.ends[s] = nil
	if err != nil {
		return &StepError{"close", s, err}
	}
	return nil
}
