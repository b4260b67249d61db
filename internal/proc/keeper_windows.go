package proc

import "os"

// The job object does what a keeper does: the system ends the tree when the
// last handle of the job is closed, which is when we end.

type keeper struct{}

func startKeeper(Tree) (keeper, error) { return keeper{}, nil }
func (keeper) pid() int                { return 0 }
func (keeper) say(byte)                {}
func (keeper) dismiss()                {}
func runKeeper([]string)               {}

func (t Tree) signal(os.Signal)          {}
func (t Tree) signalGroup(os.Signal)     {}
func (t Tree) leftGroup() []int          { return nil }
func (t Tree) kill()                     {}
func (t Tree) groupAlive() bool          { return false }
func (t Tree) groupHolds([]uintptr) bool { return false }
