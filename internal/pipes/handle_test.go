package pipes

import (
	"os"
	"path/filepath"
	"testing"
)

// opened opens a handle for a test.
func opened(t *testing.T, open func() (Handle, error)) Handle {
	t.Helper()
	h, err := open()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = Close(h) })
	return h
}

func tempFile(t *testing.T) *os.File {
	t.Helper()
	f, err := os.Create(filepath.Join(t.TempDir(), "file"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = f.Close() })
	return f
}

func TestDuplicateIsAnOwnHandle(t *testing.T) {
	e := newEnds(t)
	d, err := Duplicate(e.w)
	if err != nil {
		t.Fatal(err)
	}
	if d == e.w {
		t.Fatal("the duplicate is the same handle")
	}
	e.closeWriter()
	if _, err := newConn(t, d).Write([]byte("x")); err != nil {
		t.Errorf("the duplicate ended with its original: %v", err)
	}
	if n, err := newConn(t, e.r).Read(make([]byte, 2)); n != 1 || err != nil {
		t.Errorf("read %d, %v", n, err)
	}
	if err := Close(d); err != nil {
		t.Error(err)
	}
	if n, err := newConn(t, e.r).Read(make([]byte, 2)); n != 0 || err == nil {
		t.Errorf("a writer is left: %d, %v", n, err)
	}
}

func TestNotOpen(t *testing.T) {
	for _, h := range []Handle{gone, None} {
		if d, err := Duplicate(h); err == nil || d != None {
			t.Errorf("Duplicate(%d) gave %d, %v", h, d, err)
		}
		if err := Close(h); err == nil {
			t.Errorf("Close(%d) gave no error", h)
		}
		if IsTerminal(h) || NeverBlocks(h) {
			t.Errorf("handle %d is a terminal: %t, never blocks: %t", h, IsTerminal(h), NeverBlocks(h))
		}
	}
}

func TestOpenNullReadsAndWrites(t *testing.T) {
	c := newConn(t, opened(t, OpenNull))
	if n, err := c.Write([]byte("x")); n != 1 || err != nil {
		t.Errorf("wrote %d, %v", n, err)
	}
	if n, err := c.Read(make([]byte, 1)); n != 0 || err == nil {
		t.Errorf("read %d, %v", n, err)
	}
}

func TestWhatNeverBlocks(t *testing.T) {
	e := newEnds(t)
	for _, test := range []struct {
		name string
		h    Handle
		want bool
	}{
		{"null device", opened(t, OpenNull), true},
		{"regular file", Handle(tempFile(t).Fd()), true},
		{"pipe", e.w, false},
	} {
		if got := NeverBlocks(test.h); got != test.want {
			t.Errorf("%s: %t, want %t", test.name, got, test.want)
		}
		if IsTerminal(test.h) {
			t.Errorf("%s is taken for a terminal", test.name)
		}
	}
}
