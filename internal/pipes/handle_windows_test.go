package pipes

import (
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"golang.org/x/sys/windows"
)

// ofTests has the open handles of the tests. A handle that is closed twice hits a stranger
// with the same value, such as one of Go's runtime.
var ofTests = struct {
	sync.Mutex
	open map[Handle]bool
}{open: map[Handle]bool{}}

// mustClose closes handles at the end of the test, unless closeNow has.
func mustClose(t *testing.T, handles ...Handle) {
	ofTests.Lock()
	defer ofTests.Unlock()
	for _, h := range handles {
		ofTests.open[h] = true
		t.Cleanup(func() { closeNow(h) })
	}
}

// closeNow closes a handle of mustClose, once.
func closeNow(h Handle) {
	ofTests.Lock()
	defer ofTests.Unlock()
	if ofTests.open[h] {
		delete(ofTests.open, h)
		_ = Close(h)
	}
}

func newPipe(t *testing.T) (r, w Handle) {
	t.Helper()
	r, w, err := Pipe()
	if err != nil {
		t.Fatal(err)
	}
	mustClose(t, r, w)
	return r, w
}

func newNull(t *testing.T) Handle {
	t.Helper()
	h, err := OpenNull()
	if err != nil {
		t.Fatal(err)
	}
	mustClose(t, h)
	return h
}

func newDuplicate(t *testing.T, h Handle) Handle {
	t.Helper()
	d, err := Duplicate(h)
	if err != nil {
		t.Fatal(err)
	}
	mustClose(t, d)
	return d
}

// closedHandle returns a value that is no open handle any more.
func closedHandle(t *testing.T) Handle {
	t.Helper()
	h, err := OpenNull()
	if err != nil {
		t.Fatal(err)
	}
	if err := Close(h); err != nil {
		t.Fatal(err)
	}
	return h
}

func inherited(t *testing.T, h Handle) bool {
	t.Helper()
	yes, err := IsInherited(h)
	if err != nil {
		t.Fatal(err)
	}
	return yes
}

func TestChildrenInheritNoneOfOurHandles(t *testing.T) {
	r, w := newPipe(t)
	for name, h := range map[string]Handle{
		"read end": r, "write end": w, "null": newNull(t), "duplicate": newDuplicate(t, r),
	} {
		if inherited(t, h) {
			t.Errorf("children inherit the %s", name)
		}
	}
	if err := SetInherited(w, true); err != nil || !inherited(t, w) {
		t.Fatalf("SetInherited: %v, and children inherit it: %v", err, inherited(t, w))
	}
	if inherited(t, newDuplicate(t, w)) {
		t.Error("children inherit the duplicate of a handle that they inherit")
	}
	d, err := DuplicateInheritable(r)
	if err != nil {
		t.Fatal(err)
	}
	mustClose(t, d)
	if !inherited(t, d) || Compare(d, r) != Same {
		t.Error("children don't inherit the inheritable duplicate, or it is another object")
	}
}

// The handle of this process has the value that means "no handle" elsewhere.
func TestNoHandle(t *testing.T) {
	for _, h := range []Handle{0, None, Handle(windows.CurrentThread()), gone} {
		if d, err := Duplicate(h); err == nil {
			mustClose(t, d)
			t.Errorf("Duplicate(%#x) gave %#x", h, d)
		}
		if err := Close(h); err == nil {
			t.Errorf("Close(%#x) gave no error", h)
		}
		if id, err := Identify(h); err == nil {
			t.Errorf("Identify(%#x) gave %q", h, id)
		}
		if _, err := ReadModes(h); err == nil {
			t.Errorf("ReadModes(%#x) gave no error", h)
		}
		if IsTerminal(h) || NeverBlocks(h) {
			t.Errorf("%#x is a terminal or never blocks", h)
		}
	}
}

func TestNullDevice(t *testing.T) {
	null := newNull(t)
	c := NewConn(null)
	if n, err := c.Read(make([]byte, 9)); n != 0 || err != io.EOF {
		t.Errorf("Read gave %d, %v", n, err)
	}
	if n, err := c.Write([]byte("gone")); n != 4 || err != nil {
		t.Errorf("Write gave %d, %v", n, err)
	}
	if id, err := Identify(null); id != "null:" || err != nil {
		t.Errorf("Identify gave %q, %v", id, err)
	}
}

func TestNeverBlocks(t *testing.T) {
	r, w := newPipe(t)
	file, _ := newFile(t, "")
	for _, c := range []struct {
		name string
		h    Handle
		want bool
	}{{"null", newNull(t), true}, {"file", file, true}, {"read end", r, false}, {"write end", w, false}} {
		if got := NeverBlocks(c.h); got != c.want {
			t.Errorf("%s: %v, want %v", c.name, got, c.want)
		}
		if IsTerminal(c.h) {
			t.Errorf("%s is a terminal", c.name)
		}
	}
}

// setSlot gives standard input another value until the end of the test.
func setSlot(t *testing.T, h Handle) {
	t.Helper()
	before := slotValue(0)
	if err := SetStandard(0, h); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = SetStandard(0, before) })
}

func TestStandard(t *testing.T) {
	null := newNull(t)
	setSlot(t, null)
	if got := Standard(0); got != null {
		t.Errorf("Standard(0) is %#x, want %#x", got, null)
	}
	for _, h := range []Handle{0, None, closedHandle(t)} {
		setSlot(t, h)
		if got := Standard(0); got != None {
			t.Errorf("with %#x Standard(0) is %#x, want none", h, got)
		}
	}
}

// A standard slot may hold the value of a handle that was closed. The system
// gives that value to what is opened next.
func TestNoHandleLandsOnAStandardSlot(t *testing.T) {
	r, _ := newPipe(t)
	for name, make := range map[string]func() (Handle, error){
		"duplicate": func() (Handle, error) { return Duplicate(r) },
		"null":      OpenNull,
		"pipe": func() (Handle, error) {
			r, w, err := Pipe()
			mustClose(t, w)
			return r, err
		},
	} {
		stale := closedHandle(t)
		setSlot(t, stale)
		h, err := make()
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		mustClose(t, h)
		if h == stale {
			t.Errorf("%s: got the value of a standard slot", name)
		}
		if open(stale) {
			t.Errorf("%s: something stayed open under the value of a standard slot", name)
		}
	}
}

func newFile(t *testing.T, content string) (Handle, string) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	return openFile(t, path), path
}

func openFile(t *testing.T, path string) Handle {
	t.Helper()
	h, err := windows.Open(path, windows.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	mustClose(t, Handle(h))
	return Handle(h)
}

func TestCompare(t *testing.T) {
	r, w := newPipe(t)
	file, path := newFile(t, "")
	for _, c := range []struct {
		name string
		a, b Handle
		want Verdict
	}{
		{"itself", r, r, Same},
		{"duplicate", newDuplicate(t, w), w, Same},
		{"other end", r, w, Different},
		{"file opened twice", file, openFile(t, path), Different},
		{"null and null", newNull(t), newNull(t), Different},
		{"null and pipe", newNull(t), w, Different},
		{"closed and pipe", closedHandle(t), w, Closed},
		{"pipe and closed", w, closedHandle(t), Different},
		{"nothing and pipe", None, w, Closed},
		{"empty and pipe", 0, w, Closed},
		{"pipe and nothing", w, None, Different},
	} {
		if got := Compare(c.a, c.b); got != c.want {
			t.Errorf("%s: %v, want %v", c.name, got, c.want)
		}
	}
}

func TestCompareByIdentity(t *testing.T) {
	r, w := newPipe(t)
	otherR, _ := newPipe(t)
	for _, c := range []struct {
		name string
		a, b Handle
		want Verdict
	}{
		{"duplicate", newDuplicate(t, w), w, Alike},
		{"other pipe", r, otherR, Different},
		{"null and pipe", newNull(t), w, Different},
		{"closed", w, closedHandle(t), Unknown},
	} {
		if got := compareIdentities(c.a, c.b); got != c.want {
			t.Errorf("%s: %v, want %v", c.name, got, c.want)
		}
	}
}

func TestIdentity(t *testing.T) {
	r, w := newPipe(t)
	other, _ := newPipe(t)
	file, path := newFile(t, "")
	otherFile, _ := newFile(t, "")
	odd, _ := namedPipe(t, `a;b@c=d%e f`, windows.PIPE_ACCESS_DUPLEX, 0)
	id := func(h Handle) Identity {
		t.Helper()
		id, err := Identify(h)
		if err != nil {
			t.Fatal(err)
		}
		if strings.ContainsAny(string(id), ";@= ") || id == "" {
			t.Errorf("identity %q can't be told in an environment", id)
		}
		if !id.Is(h) {
			t.Errorf("identity %q doesn't recognise its own handle", id)
		}
		return id
	}
	all := map[Identity]string{}
	for name, h := range map[string]Handle{
		"pipe": r, "other pipe": other, "odd pipe": odd, "null": newNull(t), "file": file, "other file": otherFile,
	} {
		if as, seen := all[id(h)]; seen {
			t.Errorf("%s has the identity of %s", name, as)
		}
		all[id(h)] = name
	}
	for name, pair := range map[string][2]Handle{
		"ends of a pipe": {r, w}, "duplicate": {w, newDuplicate(t, w)}, "file opened twice": {file, openFile(t, path)},
	} {
		if a, b := id(pair[0]), id(pair[1]); a != b {
			t.Errorf("%s: %q and %q", name, a, b)
		}
	}
}
