package guard

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/wireguardrun/wireguardrun/internal/pipes"
)

// The exhaustive proof: every life of a claim, with up to three operations that
// fail in each way they can, on a model of a process's descriptors. life_test.go
// lives the same lives with real ones.

// object is an open file description of the model; name is that of its file.
type object struct{ name string }

// table is the descriptor table of the model.
type table struct {
	plan
	open map[handle]*object
}

var errModel = errors.New("bad descriptor")

func newTable(p plan) *table {
	in, out, stderr := &object{"wire in"}, &object{"wire out"}, &object{"stderr"}
	if p.stderrIsWire {
		stderr = out
	}
	if p.oneTerminal {
		in, stderr = out, out
	}
	if p.null {
		in.name, out.name = "null", "null"
	}
	return &table{p, map[handle]*object{0: in, 1: out, 2: stderr}}
}

// add gives o the lowest free number from 3 up.
func (t *table) add(o *object) handle {
	h := handle(3)
	for t.open[h] != nil {
		h++
	}
	t.open[h] = o
	return h
}

func (t *table) duplicate(h handle) (handle, error) {
	if t.open[h] == nil {
		return none, errModel
	}
	return t.add(t.open[h]), nil
}

func (t *table) move(from, to handle) error {
	if t.open[from] == nil {
		return errModel
	}
	t.open[to] = t.open[from]
	return nil
}

func (t *table) system() system {
	return system{
		standard:  func(s Stream) handle { return handle(s) },
		duplicate: func(s Stream) (handle, error) { return t.duplicate(handle(s)) },
		open: func(what diversion) (handle, handle, error) {
			switch what.kind {
			case toStderr:
				d, err := t.duplicate(2)
				return d, none, err
			case toLifeline:
				return t.add(&object{"lifeline"}), t.add(&object{"lifeline's hold"}), nil
			default:
				return t.add(&object{"null"}), none, nil
			}
		},
		divert:  func(s Stream, d handle) error { return t.move(d, handle(s)) },
		restore: func(s Stream, saved handle) error { return t.move(saved, handle(s)) },
		compare: func(s Stream, h handle) pipes.Verdict {
			a, b := t.open[handle(s)], t.open[h]
			switch {
			case a == nil:
				return pipes.Closed
			case b == nil:
				return pipes.Different
			case t.NoKcmp && a.name == b.name:
				return pipes.Alike
			case a == b:
				return pipes.Same
			default:
				return pipes.Different
			}
		},
		close: func(h handle) error {
			if t.open[h] == nil {
				return errModel
			}
			delete(t.open, h)
			return nil
		},
		readModes:   func(int) (pipes.Modes, error) { return pipes.Modes{}, nil },
		reinstate:   func(int, pipes.Modes) error { return nil },
		reachesWire: func(what diversion) bool { return t.stderrIsWire && what.kind == toStderr },
	}
}

// plan is what a life is about.
type plan struct {
	Streams  []Stream // that are claimed
	Lifeline bool
	NoKcmp   bool // two openings of one file can't be told apart

	stderrIsWire bool
	oneTerminal  bool // 0, 1 and 2 are one open file description
	null         bool // 0 and 1 are the null device, as after a start with holes
}

func (p plan) config() config {
	cfg := config{lifeline: p.Lifeline}
	for _, s := range p.Streams {
		cfg.only[s] = true
	}
	return cfg
}

func (p plan) String() string {
	text := fmt.Sprintf("streams %v", p.Streams)
	for _, with := range []struct {
		name string
		on   bool
	}{
		{"lifeline", p.Lifeline}, {"stderr is wire", p.stderrIsWire}, {"one terminal", p.oneTerminal},
		{"null", p.null}, {"no kcmp", p.NoKcmp},
	} {
		if with.on {
			text += ", " + with.name
		}
	}
	return text
}

// modelLife lives one life and returns the operations, and what did not hold.
func modelLife(p plan, faults []fault) (trace []string, err error) {
	t := newTable(p)
	wires := [2]*object{t.open[0], t.open[1]}
	before := len(t.open)
	f := &faulty{real: t.system(), faults: faults}
	f.closeStandard = func(s Stream) { delete(t.open, handle(s)) }
	r := &registry{sys: f.system()}

	var broken []error
	fail := func(format string, args ...any) { broken = append(broken, fmt.Errorf(format, args...)) }
	told := 0 // errors that tell of a close
	check := func(stage string, w *Wire) {
		for s, wire := range wires {
			at, held := t.open[handle(s)], r.held[s] != nil
			switch {
			case at == nil:
				fail("%s: descriptor %d is a hole", stage, s)
			case at != wire && !held:
				fail("%s: descriptor %d is on %s and nobody holds the claim", stage, s, at.name)
			case at != wire && at == wires[1-s]:
				fail("%s: descriptor %d is on %s", stage, s, at.name)
			}
			if e := w.ends[s]; e != nil && held {
				if h, _ := e.claim.served(); t.open[h] != wire {
					fail("%s: %s serves %v in state %s", stage, Stream(s), t.open[h], e.claim.state)
				}
			}
		}
	}
	named := func(stage string, err error) {
		for _, e := range leaves(err) {
			var step *StepError
			switch {
			case !errors.As(e, &step) || step.Op == "":
				fail("%s: error %q names no step", stage, e)
			case len(step.Op) > 6 && step.Op[:6] == "close ":
				told++
			}
		}
	}

	w, cErr := r.claim(p.config())
	if cErr != nil {
		return f.trace, fmt.Errorf("the claim was refused: %w", cErr)
	}
	check("claimed", w)
	named("claim", w.Err())
	if _, err := r.claim(newConfig(nil)); !errors.Is(err, ErrClaimed) {
		fail("a second claim gave %v", err)
	}
	check("second claim", w)
	for n := 1; ; n++ {
		rErr := w.Release()
		check(fmt.Sprintf("release %d", n), w)
		named("release", rErr)
		if w.State() == (Status{}) {
			break
		}
		if rErr == nil {
			fail("release %d gave no error and left %v", n, w.State())
		}
		if _, err := r.claim(p.config()); !errors.Is(err, ErrClaimed) {
			fail("a claim of what release %d left gave %v", n, err)
		}
		if n > len(faults)+1 {
			fail("%d releases left %v", n, w.State())
			break
		}
	}
	if err := w.Release(); err != nil {
		fail("one more release gave %v", err)
	}
	trace = append([]string(nil), f.trace...)

	later, lErr := r.claim(newConfig(nil))
	if lErr != nil {
		return trace, fmt.Errorf("a later claim was refused: %w", lErr)
	}
	check("later claim", later)
	named("later claim", later.Err())
	for n := 0; later.State() != (Status{}) && n <= len(faults)+1; n++ {
		named("later release", later.Release())
	}
	check("the end", later)
	if extra := len(t.open) - before; extra < 0 || extra > told {
		fail("%d descriptors too many, %d told", extra, told)
	}
	return trace, errors.Join(broken...)
}

// leaves returns the errors that errors.Join has put together.
func leaves(err error) []error {
	if err == nil {
		return nil
	}
	if joined, ok := err.(interface{ Unwrap() []error }); ok {
		var all []error
		for _, e := range joined.Unwrap() {
			all = append(all, leaves(e)...)
		}
		return all
	}
	return []error{err}
}

const mostFaults = 3

// everyLife calls visit with every list of up to mostFaults faults that a life
// can meet, and returns their number. A life with a fault takes other steps
// than one without, so the lists grow along the steps that were taken.
func everyLife(p plan, visit func(faults []fault, err error)) (lives int) {
	var grow func(faults []fault)
	grow = func(faults []fault) {
		trace, err := modelLife(p, faults)
		lives++
		visit(faults, err)
		if len(faults) == mostFaults {
			return
		}
		from := 0
		if len(faults) > 0 {
			from = faults[len(faults)-1].Step + 1
		}
		for step := from; step < len(trace); step++ {
			for _, how := range waysOf(trace[step]) {
				grow(append(faults[:len(faults):len(faults)], fault{step, how}))
			}
		}
	}
	grow(nil)
	return lives
}

// plans are those that life_test.go can live too.
func plans() []plan {
	return []plan{
		{Streams: []Stream{In, Out}},
		{Streams: []Stream{In}},
		{Streams: []Stream{Out}},
		{Streams: []Stream{In, Out}, Lifeline: true},
	}
}

func modelPlans() []plan {
	return withoutKcmpToo(append(plans(),
		plan{Streams: []Stream{In, Out}, stderrIsWire: true},
		plan{Streams: []Stream{In, Out}, oneTerminal: true},
		plan{Streams: []Stream{In, Out}, null: true}))
}

func withoutKcmpToo(all []plan) []plan {
	for _, p := range all {
		p.NoKcmp = true
		all = append(all, p)
	}
	return all
}

func TestEveryLife(t *testing.T) {
	lives := 0
	for _, p := range modelPlans() {
		lives += everyLife(p, func(faults []fault, err error) {
			if err != nil {
				t.Errorf("%v, faults %v:\n%v", p, faults, err)
			}
			if t.Failed() {
				t.FailNow()
			}
		})
	}
	t.Logf("%d lives enumerated", lives)
}

// It is no part of TestEveryLife, which mutations must break by what they do to
// a life and not by what they do to the number of them.
func TestDocumentationTellsHowManyLives(t *testing.T) {
	lives := 0
	for _, p := range modelPlans() {
		lives += everyLife(p, func([]fault, error) {})
	}
	doc, err := os.ReadFile("doc.go")
	if err != nil || !strings.Contains(string(doc), fmt.Sprintf(": %d lives ", lives)) {
		t.Errorf("doc.go tells of another number than %d, %v", lives, err)
	}
}
