//go:build unix

package pipes

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
)

func TestReinstateNonblocking(t *testing.T) {
	for _, before := range []bool{false, true} {
		h := newEnds(t).w
		if err := unix.SetNonblock(int(h), before); err != nil {
			t.Fatal(err)
		}
		m, err := ReadModes(h)
		if err != nil {
			t.Fatal(err)
		}
		if err := unix.SetNonblock(int(h), !before); err != nil {
			t.Fatal(err)
		}
		if err := m.Reinstate(h); err != nil || nonblocking(t, h) != before {
			t.Errorf("%v, nonblocking %t, want %t", err, nonblocking(t, h), before)
		}
	}
}

// The number names another object by now: the modes are none of its.
func TestReinstateLeavesStrangersAlone(t *testing.T) {
	a, b := newEnds(t), newEnds(t)
	m, err := ReadModes(a.w)
	if err != nil {
		t.Fatal(err)
	}
	if err := unix.SetNonblock(int(b.w), true); err != nil {
		t.Fatal(err)
	}
	if err := m.Reinstate(b.w); err != nil || !nonblocking(t, b.w) {
		t.Errorf("%v, nonblocking %t", err, nonblocking(t, b.w))
	}
}

func TestSetBlockingClearsNonblocking(t *testing.T) {
	h := newEnds(t).r
	if err := unix.SetNonblock(int(h), true); err != nil {
		t.Fatal(err)
	}
	if err := SetBlocking(h); err != nil || nonblocking(t, h) {
		t.Errorf("%v, nonblocking %t", err, nonblocking(t, h))
	}
	if err := SetBlocking(gone); err == nil {
		t.Error("no error for what is not open")
	}
}

// changeTerminal turns off echo and the editing of lines.
func changeTerminal(h Handle) error {
	settings, err := unix.IoctlGetTermios(int(h), ioctlGetTermios)
	if err != nil {
		return err
	}
	settings.Lflag &^= unix.ECHO | unix.ICANON
	return unix.IoctlSetTermios(int(h), ioctlSetTermios, settings)
}

// changed tells whether the modes of h are other ones than m.
func (m Modes) changed(h Handle) (bool, error) {
	now, err := ReadModes(h)
	return now != m, err
}

// changeAndReinstate changes the terminal h between ReadModes and Reinstate
// and tells whether it stayed changed.
func changeAndReinstate(h Handle) (bool, error) {
	m, err := ReadModes(h)
	if err != nil {
		return false, err
	}
	if err := changeTerminal(h); err != nil {
		return false, err
	}
	if changed, err := m.changed(h); !changed || err != nil {
		return false, fmt.Errorf("the terminal could not be changed: %w", err)
	}
	if err := m.Reinstate(h); err != nil {
		return false, err
	}
	return m.changed(h)
}

func TestReinstateTerminal(t *testing.T) {
	terminal := newTerminal(t)
	if changed, err := changeAndReinstate(terminal); err != nil || changed {
		t.Errorf("%v, still changed: %t", err, changed)
	}
}

func init() {
	roles["foreground"] = func() error {
		if changed, err := changeAndReinstate(0); err != nil || changed {
			return fmt.Errorf("in the foreground: %w, still changed: %t", err, changed)
		}
		return nil
	}
	// A shell's job in the background: another group has the terminal.
	roles["background"] = func() error {
		m, err := ReadModes(0)
		if err != nil {
			return err
		}
		if err := changeTerminal(0); err != nil {
			return err
		}
		front := exec.Command("/bin/sh", "-c", "read line")
		front.Stdin = os.Stdin
		front.SysProcAttr = &syscall.SysProcAttr{Foreground: true, Ctty: 0}
		if err := front.Start(); err != nil {
			return err
		}
		defer func() { _ = front.Process.Kill(); _ = front.Wait() }()
		changed, err := false, m.Reinstate(0)
		if err == nil {
			changed, err = m.changed(0)
		}
		if err == nil && !changed {
			err = errors.New("the settings of the terminal that another group has were put back")
		}
		return err
	}
}

// onTerminal makes 0 the controlling terminal of a command.
func onTerminal(t *testing.T) func(*exec.Cmd) {
	terminal := newTerminal(t)
	d, err := Duplicate(terminal)
	if err != nil {
		t.Fatal(err)
	}
	f := os.NewFile(uintptr(d), "terminal")
	t.Cleanup(func() { _ = f.Close() })
	return func(cmd *exec.Cmd) {
		cmd.Stdin = f
		cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true, Ctty: 0}
	}
}

func TestReinstateControllingTerminal(t *testing.T) { play(t, "foreground", "", onTerminal(t)) }

func TestReinstateInTheBackground(t *testing.T) { play(t, "background", "", onTerminal(t)) }
