package guard

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
)

var allStates = []State{Free, Duplicated, Diverted, InPlace, RolledForward, Stuck}

// The transitions of the design, written down a second time.
func TestMoves(t *testing.T) {
	legal := map[State][]State{
		Free:          {Duplicated, Diverted, InPlace},
		Duplicated:    {Diverted, InPlace, RolledForward},
		Diverted:      {Free, Stuck},
		InPlace:       {Free},
		RolledForward: {Free, Stuck},
		Stuck:         {Free, Stuck},
	}
	for _, from := range allStates {
		for _, next := range allStates {
			c := &claim{stream: Out, state: from}
			refused := panics(func() { c.to(next) })
			switch {
			case slices.Contains(legal[from], next):
				if refused != nil || c.state != next {
					t.Errorf("from %s to %s: state %s, panic %v", from, next, c.state, refused)
				}
			default:
				want := fmt.Sprintf("guard: internal error: out can't go from %s to %s", from, next)
				if refused != want || c.state != from {
					t.Errorf("from %s to %s: state %s, panic %v, want %q", from, next, c.state, refused, want)
				}
			}
		}
	}
}

func panics(f func()) (value any) {
	defer func() { value = recover() }()
	f()
	return nil
}

func TestDocumentationNamesEveryState(t *testing.T) {
	doc, err := os.ReadFile("doc.go")
	if err != nil {
		t.Fatal(err)
	}
	_, states, found := strings.Cut(string(doc), "# States\n")
	diagram, list, listed := strings.Cut(states, "// What they mean:\n")
	if !found || !listed {
		t.Fatal("doc.go has no section with the states, or their list has no heading")
	}
	for _, s := range allStates {
		if !strings.Contains(diagram, s.String()) {
			t.Errorf("the diagram lacks %q", s)
		}
		if s != Free && !strings.Contains(list, "- "+s.String()+":") {
			t.Errorf("the list lacks %q", s)
		}
	}
}

func TestStrings(t *testing.T) {
	for _, test := range []struct {
		value fmt.Stringer
		want  string
	}{
		{In, "in"}, {Out, "out"}, {Stream(7), "Stream(7)"},
		{Free, "free"}, {Duplicated, "duplicated"}, {Diverted, "diverted"}, {InPlace, "in place"},
		{RolledForward, "rolled forward"}, {Stuck, "stuck"}, {State(99), "State(99)"},
	} {
		if got := test.value.String(); got != test.want {
			t.Errorf("%#v: %q, want %q", test.value, got, test.want)
		}
	}
	if len(stateNames) != len(allStates) || len(moves) != len(allStates) {
		t.Errorf("%d names and %d lists of moves for %d states", len(stateNames), len(moves), len(allStates))
	}
}

func TestStepErrorSaysWhatFailed(t *testing.T) {
	err := &StepError{"restore", Out, os.ErrPermission}
	if got, want := err.Error(), "guard: out: restore: permission denied"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}
