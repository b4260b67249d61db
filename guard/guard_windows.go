package guard

import (
	"errors"
	"fmt"

	"github.com/wireguardrun/wireguardrun/internal/pipes"
)

// On Windows a standard stream is named in two places: the process's standard
// handle, which native code and the start of children ask for, and package
// os's files, which took its value when the program started. A claim moves
// both; the standard handle is the one that is observed.

func realSystem() system {
	st := &standardStreams{calls: realCalls()}
	return system{
		standard:  func(s Stream) handle { return pipes.Standard(int(s)) },
		duplicate: st.duplicate,
		open: func(what diversion) (d, hold handle, err error) {
			if what.kind == toStderr {
				if err := st.fill(2); err != nil {
					return none, none, err
				}
			}
			return openDiversion(what)
		},
		divert:      st.divert,
		restore:     st.restore,
		compare:     func(s Stream, h handle) pipes.Verdict { return pipes.Compare(pipes.Standard(int(s)), h) },
		close:       pipes.Close,
		inherit:     pipes.SetInherited,
		readModes:   readModes,
		reinstate:   func(fd int, m pipes.Modes) error { return m.Reinstate(pipes.Standard(fd)) },
		reachesWire: reachesWire,
	}
}

// readModes asks consoles alone: any question to a synchronous pipe waits
// while somebody reads or writes it, and standard error may be stalled.
func readModes(fd int) (pipes.Modes, error) {
	h := pipes.Standard(fd)
	if h != none && !pipes.IsTerminal(h) {
		return pipes.Modes{}, nil
	}
	return pipes.ReadModes(h)
}

// standardCalls are the system's operations on standard handles, so that
// tests can let each of them fail. n is 0, 1 or 2.
type standardCalls struct {
	get          func(n int) handle             // none when it is not open
	set          func(n int, h handle) error    // h is the process's from then on
	inheritable  func(h handle) (handle, error) // duplicate, which the caller owns
	inherited    func(h handle) (bool, error)   // do children inherit h?
	setInherited func(h handle, on bool) error
	compare      func(a, b handle) pipes.Verdict
	openNull     func() (handle, error) // the caller owns it
	close        func(h handle) error
}

func realCalls() standardCalls {
	return standardCalls{
		get:          pipes.Standard,
		set:          pipes.SetStandard,
		inheritable:  pipes.DuplicateInheritable,
		inherited:    pipes.IsInherited,
		setInherited: pipes.SetInherited,
		compare:      pipes.Compare,
		openNull:     pipes.OpenNull,
		close:        pipes.Close,
	}
}

// standardStreams diverts and restores the standard streams In and Out. Its
// methods are called under the lock of the registry.
type standardStreams struct {
	calls standardCalls
	taken [2]*taken // nil while the stream is on the wire
}

// taken is what restore needs to know of a stream.
type taken struct {
	// original is the standard handle that was replaced, or none when it was
	// not open. It stays the process's: never closed, and during the claim
	// not inherited by children.
	original handle
	sealed   bool // children inherited it until the claim ended that

	files *goFiles
}

// duplicate makes the private duplicate. A standard handle that is missing
// counts as the null device, and becomes it, as Go's runtime does on Unix.
func (st *standardStreams) duplicate(s Stream) (handle, error) {
	if err := st.fill(int(s)); err != nil {
		return none, err
	}
	return pipes.Duplicate(st.calls.get(int(s)))
}

// fill points standard handle n at the null device if it is not open.
func (st *standardStreams) fill(n int) error {
	if st.calls.get(n) != none {
		return nil
	}
	null, err := st.calls.openNull()
	if err != nil {
		return err
	}
	defer func() { _ = st.calls.close(null) }()
	_, err = st.place(n, null)
	return err
}

// place puts an inheritable duplicate of h into standard handle n: children
// inherit it, as they do every standard descriptor. The duplicate is the
// process's then. It is returned even with an error if the standard handle
// names it all the same, else none.
func (st *standardStreams) place(n int, h handle) (handle, error) {
	d, err := st.calls.inheritable(h)
	if err != nil {
		return none, err
	}
	err = st.calls.set(n, d)
	if err != nil && st.calls.get(n) != d {
		return none, errors.Join(err, st.calls.close(d))
	}
	return d, err
}

// divert moves the standard handle last of all that can fail, so that after a
// failure the stream is where the standard handle is. It may be called again
// while the stream is diverted already, or in a hole.
func (st *standardStreams) divert(s Stream, d handle) error {
	t := st.taken[s]
	if t == nil {
		t = &taken{original: st.calls.get(int(s))}
		t.files = findGoFiles(s, t.original)
	}
	if err := st.seal(t); err != nil {
		return fmt.Errorf("keep the wire from children: %w", err)
	}
	slot, err := st.place(int(s), d)
	if slot == none {
		if st.taken[s] == nil {
			err = errors.Join(err, st.unseal(t))
		}
		return err
	}
	st.taken[s] = t
	t.files.divert(slot)
	return err
}

// seal keeps children from inheriting the wire's handle. Go gives the children
// that it starts a list of what they inherit; those of native code get all that
// is inheritable.
func (st *standardStreams) seal(t *taken) error {
	if t.sealed || t.original == none {
		return nil
	}
	inherited, err := st.calls.inherited(t.original)
	if err != nil || !inherited {
		return err
	}
	if err := st.calls.setInherited(t.original, false); err != nil {
		// Whatever was done: as it was.
		return errors.Join(err, st.calls.setInherited(t.original, true))
	}
	t.sealed = true
	return nil
}

func (st *standardStreams) unseal(t *taken) error {
	if !t.sealed {
		return nil
	}
	t.sealed = false
	return st.calls.setInherited(t.original, true)
}

// restore puts the original handle back, or a duplicate of saved when somebody
// has closed the original. A stream that is on the wire stays as it is, so
// restore may be called again. While it can't move the standard handle it
// changes nothing.
func (st *standardStreams) restore(s Stream, saved handle) error {
	t := st.taken[s]
	if t == nil {
		if same(st.calls.compare(st.calls.get(int(s)), saved)) {
			return nil
		}
		// The standard handle was lost without a divert of ours.
		t = &taken{original: none, files: findGoFiles(s, none)}
	}
	onWire := func(h handle) bool { return same(st.calls.compare(h, saved)) }
	back, fresh := t.original, none
	var err error
	if onWire(t.original) {
		err = st.calls.set(int(s), t.original)
		if err != nil && st.calls.get(int(s)) != t.original {
			return err
		}
		err = errors.Join(err, st.unseal(t))
	} else {
		if fresh, err = st.place(int(s), saved); fresh == none {
			return err
		}
		back = fresh
	}
	st.taken[s] = nil
	t.files.restore(back, fresh, onWire)
	return err
}

// same takes what can't be told apart for the same: a handle that was the wire
// and now is alike is the wire.
func same(v pipes.Verdict) bool { return v == pipes.Same || v == pipes.Alike }
