//go:build unix

package proc

import (
	"os"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

const (
	killPasses = 400 // at most
	killPause  = 5 * time.Millisecond
)

func (t Tree) signal(sig os.Signal) {
	s, ok := sig.(syscall.Signal)
	if !ok {
		return
	}
	// All at one time, and nobody twice who leaves the group meanwhile.
	outside := t.outside()
	_ = unix.Kill(-t.group, s)
	for _, pid := range outside {
		_ = unix.Kill(pid, s)
	}
}

func (t Tree) signalRest(sig os.Signal) {
	if s, ok := sig.(syscall.Signal); ok {
		for pid := range t.leftGroup() {
			_ = unix.Kill(pid, s)
		}
	}
}

func (t Tree) leftAlive() bool {
	for range t.leftGroup() {
		return true
	}
	return false
}

func (t Tree) signalGroup(sig os.Signal) {
	if s, ok := sig.(syscall.Signal); ok {
		_ = unix.Kill(-t.group, s)
	}
}

func (t Tree) killGroup() {
	if t.group > 1 {
		_ = unix.Kill(-t.group, unix.SIGKILL)
	}
}

// kill ends when two passes in a row have found nobody: a process that was
// being born during the first is there in the second.
func (t Tree) kill() {
	for pass, empty := 0, 0; pass < killPasses && empty < 2; pass++ {
		empty++
		if t.groupAlive() {
			empty = 0
			t.killGroup()
		}
		// Each as soon as it is found: its number may be another's later.
		for pid := range t.leftGroup() {
			empty = 0
			_ = unix.Kill(pid, unix.SIGKILL)
		}
		time.Sleep(killPause)
	}
}
