package pipes

import "testing"

func TestModesOfWhatIsNotOpen(t *testing.T) {
	if m, err := ReadModes(gone); err == nil {
		t.Errorf("%v, no error", m)
	}
	m, err := ReadModes(newEnds(t).r)
	if err != nil {
		t.Fatal(err)
	}
	// A handle that was closed, or names another object by now, is left alone.
	if err := m.Reinstate(gone); err != nil {
		t.Error(err)
	}
}

func TestReinstateWithoutChange(t *testing.T) {
	e := newEnds(t)
	for name, h := range map[string]Handle{"pipe": e.w, "null device": opened(t, OpenNull), "file": Handle(tempFile(t).Fd())} {
		m, err := ReadModes(h)
		if err == nil {
			err = m.Reinstate(h)
		}
		if err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if now, err := ReadModes(h); err != nil || now != m {
			t.Errorf("%s: modes have changed, %v", name, err)
		}
	}
}

func TestSetBlockingOfBlocking(t *testing.T) {
	if err := SetBlocking(newEnds(t).r); err != nil {
		t.Error(err)
	}
}
