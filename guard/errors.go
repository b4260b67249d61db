package guard

import (
	"errors"
	"fmt"
)

var (
	// ErrClaimed is returned when another Wire of this process holds a
	// stream that was asked for. Nothing was taken: the holder's claim and
	// both standard descriptors are as before.
	ErrClaimed = errors.New("guard: the wire is already claimed in this process; release the other claim first")

	// ErrHandover is returned where the standard descriptors are only the
	// diversion of a parent that handed the wire down: by [Open] when that
	// wire can't be used, by [Claim] always. Nothing was taken.
	ErrHandover = errors.New("guard: the wire that was handed down can't be used")

	// ErrNotClaimed is returned by reads or writes of a direction that
	// [Only] left out.
	ErrNotClaimed = errors.New("this direction was not claimed")
)

// StepError is one operation of a claim or a release that failed, or a read
// or write of the wire.
type StepError struct {
	Op     string // "duplicate", "open diversion", "divert", "close diversion", "roll back", "restore", ...
	Stream Stream // which direction
	Err    error  // the system's error
}

func (e *StepError) Error() string {
	return fmt.Sprintf("guard: %s: %s: %v", e.Stream, e.Op, e.Err)
}

func (e *StepError) Unwrap() error { return e.Err }
