package proc

import "os"

// The job object does what a keeper does: the system ends the tree when the
// last handle of the job is closed, which is when we end.

type keeper struct{}

func startKeeper(string) (keeper, error) { return keeper{}, nil }
func (keeper) pid() int                  { return 0 }
func (keeper) say(byte)                  {}
func (keeper) guard(int)                 {}
func (keeper) dismiss()                  {}
func (keeper) wait()                     {}
func runKeeper([]string)                 {}

// The job is the tree. A console event is the one thing that can be sent, and
// it goes to the server's group.

func (t Tree) signal(sig os.Signal)      { t.signalGroup(sig) }
func (t Tree) kill()                     { _ = t.server.kill() }
func (t Tree) leftGroup() []int          { return nil }
func (t Tree) groupAlive() bool          { return false }
func (t Tree) groupHolds([]uintptr) bool { return false }

func (t Tree) signalGroup(sig os.Signal) {
	if sig != nil {
		_ = t.server.signal(sig)
	}
}
