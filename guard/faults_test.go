package guard

import (
	"errors"
	"fmt"

	"github.com/wireguardrun/wireguardrun/internal/pipes"
)

// fault is one operation that goes wrong: the nth call, counted from 0, of all
// operations of a system.
type fault struct {
	Step int
	How  how
}

type how string

const (
	untouched how = "untouched" // fails, and has done nothing
	closing   how = "closing"   // fails, and has closed the descriptor it was to replace
	done      how = "done"      // has done it, and reports a failure
	refused   how = "refused"   // a comparison that the system refuses
)

var errInjected = errors.New("injected failure")

// faulty wraps a system so that the steps of faults go wrong, and notes every
// operation.
type faulty struct {
	real          system
	closeStandard func(Stream) // what a dup2 does that fails after closing its target
	faults        []fault
	trace         []string
}

// waysOf lists how an operation can go wrong.
func waysOf(op string) []how {
	switch op {
	case "duplicate", "open":
		return []how{untouched}
	case "divert", "restore":
		return []how{untouched, closing, done}
	case "close":
		return []how{untouched, done}
	case "compare":
		return []how{refused}
	default:
		return nil
	}
}

// next notes an operation and returns how it goes wrong, or "".
func (f *faulty) next(op string) how {
	step := len(f.trace)
	f.trace = append(f.trace, op)
	for _, fault := range f.faults {
		if fault.Step == step {
			return fault.How
		}
	}
	return ""
}

func (f *faulty) move(op string, s Stream, do func() error) error {
	switch f.next(op) {
	case untouched:
		return errInjected
	case closing:
		f.closeStandard(s)
		return errInjected
	case done:
		if err := do(); err != nil {
			return err
		}
		return errInjected
	default:
		return do()
	}
}

// system returns the faulty system.
func (f *faulty) system() system {
	sys := f.real
	sys.duplicate = func(s Stream) (handle, error) {
		if f.next("duplicate") != "" {
			return none, errInjected
		}
		return f.real.duplicate(s)
	}
	sys.open = func(what diversion) (handle, handle, error) {
		if f.next("open") != "" {
			return none, none, errInjected
		}
		return f.real.open(what)
	}
	sys.divert = func(s Stream, d handle) error {
		return f.move("divert", s, func() error { return f.real.divert(s, d) })
	}
	sys.restore = func(s Stream, saved handle) error {
		return f.move("restore", s, func() error { return f.real.restore(s, saved) })
	}
	sys.compare = func(s Stream, h handle) pipes.Verdict {
		if f.next("compare") == refused {
			return pipes.Unknown
		}
		return f.real.compare(s, h)
	}
	sys.close = func(h handle) error {
		switch f.next("close") {
		case untouched:
			return errInjected
		case done:
			_ = f.real.close(h)
			return errInjected
		default:
			return f.real.close(h)
		}
	}
	return sys
}

func (f fault) String() string { return fmt.Sprintf("%d=%s", f.Step, f.How) }
