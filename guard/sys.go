package guard

import "github.com/wireguardrun/wireguardrun/internal/pipes"

type handle = pipes.Handle

const none = pipes.None

// diversion says where a standard descriptor points during a claim.
type diversion struct {
	kind diversionKind
	file handle // of kind toFile: borrowed
}

type diversionKind uint8

const (
	toNull     diversionKind = iota
	toStderr                 // a duplicate of standard error
	toFile                   // a duplicate of a file that the caller chose
	toLifeline               // an open pipe that never has data
)

// system is every operation of the operating system that a claim performs, so
// that tests can let each of them fail. None of them keeps state but restore's
// Windows twin, which remembers the handle that it replaced.
type system struct {
	// standard returns the handle of standard stream s now; borrowed.
	standard func(s Stream) handle

	// duplicate returns a private duplicate of standard stream s, never one
	// of the standard descriptors and not inherited. The caller owns it.
	duplicate func(s Stream) (handle, error)

	// open opens a diversion. The caller owns d and, for a lifeline, hold,
	// the write end that has to stay open for as long as the diversion is
	// in use; else hold is none.
	open func(what diversion) (d, hold handle, err error)

	// divert makes standard stream s name the object of d, which stays the
	// caller's.
	divert func(s Stream, d handle) error

	// restore makes standard stream s name the wire again, whose private
	// duplicate is saved, which stays the caller's.
	restore func(s Stream, saved handle) error

	// compare tells whether standard stream s and h are one object.
	compare func(s Stream, h handle) pipes.Verdict

	// close closes h.
	close func(h handle) error

	// inherit says whether children inherit h.
	inherit func(h handle, on bool) error

	// readModes and reinstate keep what a claim's time must not change on
	// the standard descriptors 0, 1 and 2.
	readModes func(fd int) (pipes.Modes, error)
	reinstate func(fd int, m pipes.Modes) error

	// reachesWire reports whether standard error, or the caller's file, is
	// the same file as standard output, and no terminal.
	reachesWire func(what diversion) bool
}
