//go:build unix && !linux && !darwin

package proc

import (
	"iter"
	"slices"

	"golang.org/x/sys/unix"
)

// Here only the group is known. FreeBSD's reaper keeps the rest among our own
// descendants; the environment of others is not for everyone to read.

func (t Tree) outside() []int { return slices.Collect(t.leftGroup()) }

func (t Tree) leftGroup() iter.Seq[int] { return slices.Values(descendants(t.group)) }

// groupAlive counts a member that has ended and was not waited for as well.
func (t Tree) groupAlive() bool {
	if t.group <= 1 {
		return false
	}
	err := unix.Kill(-t.group, 0)
	return err == nil || err == unix.EPERM
}

func (t Tree) groupHolds([]Object) bool { return true }
