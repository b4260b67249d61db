package proc

import (
	"os"

	"golang.org/x/sys/windows"
)

// The job is the tree, and the server's group too: nothing leaves it but what
// asks for that when it is started. A console event is the one thing that can
// be sent, and it goes to the server's process group.

func (t Tree) signal(sig os.Signal) { t.signalGroup(sig) }
func (t Tree) signalRest(os.Signal) {} // nobody
func (t Tree) kill()                { _ = t.server.kill() }
func (t Tree) killGroup()           { t.kill() }
func (t Tree) leftAlive() bool      { return false }
func (t Tree) groupAlive() bool     { return t.server.job != 0 && activeIn(t.server.job) > 0 }

func (t Tree) signalGroup(sig os.Signal) {
	if sig != nil {
		_ = t.server.signal(sig)
	}
}

// groupHolds goes by the number of handles that name the same object: it is
// higher than before the start as long as a process of the group has one.
func (t Tree) groupHolds(objects []Object) bool {
	for _, o := range objects {
		before, known := t.server.before[o.handle]
		if !known {
			return true
		}
		if now, known := handleCount(windows.Handle(o.handle)); !known || now > before {
			return true
		}
	}
	return false
}
