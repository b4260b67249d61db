//go:build unix

package pipes

import (
	"fmt"
	"testing"

	"github.com/creack/pty"
	"golang.org/x/sys/unix"
)

func newTerminal(t *testing.T) Handle {
	t.Helper()
	client, server, err := pty.Open()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = client.Close(); _ = server.Close() })
	return Handle(server.Fd())
}

func closeOnExec(h Handle) bool {
	flags, err := unix.FcntlInt(uintptr(h), unix.F_GETFD, 0)
	return err == nil && flags&unix.FD_CLOEXEC != 0
}

// openAll opens everything that this package can open.
func openAll() (map[string]Handle, error) {
	r, w, err := Pipe()
	if err != nil {
		return nil, err
	}
	null, err := OpenNull()
	if err != nil {
		return nil, err
	}
	d, err := Duplicate(null)
	return map[string]Handle{"pipe's read end": r, "pipe's write end": w, "null device": null, "duplicate": d}, err
}

func TestOursBlockAndAreNotInherited(t *testing.T) {
	all, err := openAll()
	if err != nil {
		t.Fatal(err)
	}
	for name, h := range all {
		if !closeOnExec(h) || nonblocking(t, h) {
			t.Errorf("%s: close-on-exec %t, nonblocking %t", name, closeOnExec(h), nonblocking(t, h))
		}
		if err := Close(h); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func init() {
	roles["holes"] = func() error {
		// Go has opened the null device in the holes that the shell made.
		for _, hole := range [][]int{{0}, {1}, {2}, {0, 1}, {0, 1, 2}} {
			for _, fd := range hole {
				_ = unix.Close(fd)
			}
			all, err := openAll()
			if err != nil {
				return fmt.Errorf("with %v closed: %w", hole, err)
			}
			for name, h := range all {
				if h <= 2 {
					return fmt.Errorf("with %v closed, the %s is %d", hole, name, h)
				}
			}
			for _, fd := range hole {
				if Compare(Handle(fd), 0) != Closed {
					return fmt.Errorf("with %v closed, %d was left open", hole, fd)
				}
			}
			for name, h := range all {
				if err := Close(h); err != nil {
					return fmt.Errorf("%s: %w", name, err)
				}
			}
			for _, fd := range hole {
				null, err := OpenNull()
				if err == nil {
					err = Redirect(null, fd)
				}
				if err == nil {
					err = Close(null)
				}
				if err != nil {
					return err
				}
			}
		}
		return nil
	}
}

// A freshly opened file takes the lowest number; ours must not take a hole
// among the standard descriptors.
func TestNoneOfOursLandsOnAStandardDescriptor(t *testing.T) {
	for _, redirections := range []string{"", "<&-", "<&- >&- 2>&-"} {
		play(t, "holes", redirections, nil)
	}
}

func TestRedirect(t *testing.T) {
	a, b := newEnds(t), newEnds(t)
	if err := Redirect(a.w, int(b.w)); err != nil {
		t.Fatal(err)
	}
	if Compare(a.w, b.w) == Different || closeOnExec(b.w) {
		t.Errorf("the target is %s, close-on-exec %t", Compare(a.w, b.w), closeOnExec(b.w))
	}
	// Equal numbers are a check that the descriptor is open.
	if err := Redirect(a.w, int(a.w)); err != nil || !closeOnExec(a.w) {
		t.Errorf("onto itself: %v, close-on-exec %t", err, closeOnExec(a.w))
	}
	for _, target := range []int{int(gone), int(b.w)} {
		if err := Redirect(gone, target); err == nil {
			t.Errorf("redirecting what is not open to %d gave no error", target)
		}
	}
	if Compare(a.w, b.w) == Different {
		t.Error("a Redirect that failed has changed its target")
	}
}

func TestSetCloseOnExec(t *testing.T) {
	e := newEnds(t)
	for _, on := range []bool{false, true} {
		if err := SetCloseOnExec(e.r, on); err != nil || closeOnExec(e.r) != on {
			t.Errorf("%t: %v, close-on-exec %t", on, err, closeOnExec(e.r))
		}
	}
	if err := SetCloseOnExec(gone, true); err == nil {
		t.Error("no error for what is not open")
	}
}

func TestStandardIsTheNumber(t *testing.T) {
	for n := range 3 {
		if h := Standard(n); h != Handle(n) {
			t.Errorf("%d, want %d", h, n)
		}
	}
}

func TestTerminalIsOne(t *testing.T) {
	terminal := newTerminal(t)
	if !IsTerminal(terminal) || NeverBlocks(terminal) {
		t.Errorf("terminal: %t, never blocks: %t", IsTerminal(terminal), NeverBlocks(terminal))
	}
	if IsTerminal(newSocketpair(t).r) {
		t.Error("a socket is taken for a terminal")
	}
}
