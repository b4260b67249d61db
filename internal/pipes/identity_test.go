package pipes

import (
	"os"
	"testing"
)

func TestTellApart(t *testing.T) {
	a, b := newEnds(t), newEnds(t)
	f := tempFile(t)
	second, err := os.Open(f.Name())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = second.Close() }()
	dup := func(h Handle) Handle {
		return opened(t, func() (Handle, error) { return Duplicate(h) })
	}
	for _, test := range []struct {
		name string
		a, b Handle
		want []Verdict
	}{
		{"itself", a.r, a.r, []Verdict{Same}},
		// Where duplicates can't be told from second openings it is Alike.
		{"duplicate", a.w, dup(a.w), []Verdict{Same, Alike}},
		{"both ends of one pipe", a.r, a.w, []Verdict{Different, Alike}},
		{"two pipes", a.r, b.r, []Verdict{Different}},
		{"two openings of one file", Handle(f.Fd()), Handle(second.Fd()), []Verdict{Different, Alike}},
		{"pipe and file", a.r, Handle(f.Fd()), []Verdict{Different}},
		{"the first is not open", gone, a.r, []Verdict{Closed}},
		{"the second is not open", a.r, gone, []Verdict{Different}},
	} {
		t.Run(test.name, func(t *testing.T) {
			got := Compare(test.a, test.b)
			for _, want := range test.want {
				if got == want {
					return
				}
			}
			t.Errorf("%s, want %s", got, test.want)
		})
	}
}

func TestIdentityNamesTheObject(t *testing.T) {
	a, b := newEnds(t), newEnds(t)
	id, err := Identify(a.r)
	if err != nil || id == "" {
		t.Fatalf("%q, %v", id, err)
	}
	d := opened(t, func() (Handle, error) { return Duplicate(a.r) })
	for _, test := range []struct {
		name string
		id   Identity
		h    Handle
		want bool
	}{
		{"the object", id, a.r, true},
		{"a duplicate", id, d, true},
		{"another pipe", id, b.r, false},
		{"not open", id, gone, false},
		{"unknown", "", a.r, false},
		{"unknown and not open", "", gone, false},
	} {
		if got := test.id.Is(test.h); got != test.want {
			t.Errorf("%s: %t, want %t", test.name, got, test.want)
		}
	}
	if id, err := Identify(gone); id != "" || err == nil {
		t.Errorf("what is not open has identity %q, %v", id, err)
	}
}

func TestSharesFileWithDuplicatesOnly(t *testing.T) {
	a, b := newEnds(t), newEnds(t)
	d := opened(t, func() (Handle, error) { return Duplicate(a.w) })
	for _, test := range []struct {
		name string
		a, b Handle
		want bool
	}{
		{"itself", a.w, a.w, true},
		{"a duplicate", d, a.w, true},
		{"another pipe", b.w, a.w, false},
		{"not open", gone, a.w, false},
		{"with what is not open", a.w, gone, false},
	} {
		if got := SharesFile(test.a, test.b); got != test.want {
			t.Errorf("%s: %t, want %t", test.name, got, test.want)
		}
	}
}

func TestVerdictNames(t *testing.T) {
	for v, want := range map[Verdict]string{
		Unknown: "unknown", Closed: "closed", Different: "different", Alike: "alike", Same: "same", 99: "unknown",
	} {
		if got := v.String(); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}
