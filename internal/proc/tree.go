package proc

import (
	"fmt"
	"math/rand/v2"
	"os"
	"time"

	"github.com/wireguardrun/wireguardrun/internal/pipes"
)

// EnvRun lists the runs that a process belongs to, outermost first, separated
// by colons. It finds the processes that left the group of their server.
const EnvRun = "WIREGUARDRUN_RUN"

// NewRun returns a name for this run that no other run has.
func NewRun() string { return fmt.Sprintf("%016x", rand.Uint64()) }

// MarkOf returns the variable that marks everything that descends from run,
// and from the runs around it that env tells of.
func MarkOf(run string, env []string) string {
	if outer := Getenv(env, EnvRun); outer != "" {
		return EnvRun + "=" + outer + ":" + run
	}
	return EnvRun + "=" + run
}

// Tree is the server and all that descends from it.
type Tree struct {
	group  int      // of the server, which leads it
	run    string   // that marks those which left the group
	server *Process // nil in a keeper
}

// NewTree returns the tree of p, whose environment has the variable of run.
func NewTree(p *Process, run string) Tree { return Tree{p.Pid(), run, p} }

// Signal sends sig to each process of the tree once. A nil sig is none.
func (t Tree) Signal(sig os.Signal) { t.signal(sig) }

// SignalRest sends sig to each process of the tree that has left the server's
// group, once.
func (t Tree) SignalRest(sig os.Signal) { t.signalRest(sig) }

// SignalGroup sends sig to the server's group, once.
func (t Tree) SignalGroup(sig os.Signal) { t.signalGroup(sig) }

// Kill kills until nothing of the tree is left, for a bounded time.
func (t Tree) Kill() { t.kill() }

// KillGroup kills the server's group; on Windows, where it is one job, the tree.
func (t Tree) KillGroup() { t.killGroup() }

// EndGroup waits for the end of the server's group, which was asked to end, and
// kills it after 5 s.
func (t Tree) EndGroup() {
	for end := time.Now().Add(laterGrace); t.groupAlive(); time.Sleep(laterLook) {
		if time.Now().After(end) {
			t.killGroup()
			return
		}
	}
}

const (
	laterGrace = 5 * time.Second // between TERM and KILL for what is left of a group
	laterLook  = 50 * time.Millisecond
)

// Alive reports whether anything of the tree lives.
func (t Tree) Alive() bool { return t.groupAlive() || t.leftAlive() }

// GroupAlive reports whether the server's process group has a living member.
func (t Tree) GroupAlive() bool { return t.groupAlive() }

// Object is the object that a descriptor names. It can be told from others even
// after that descriptor is closed.
type Object struct {
	handle pipes.Handle
	id     pipes.Identity
}

// ObjectOf returns the object that h, which is borrowed, names.
func ObjectOf(h pipes.Handle) Object {
	id, _ := pipes.Identify(h) // unknown is like no other
	return Object{h, id}
}

// GroupHolds reports whether a member of the server's group has one of the
// objects open; true where that can't be seen.
func (t Tree) GroupHolds(objects ...Object) bool { return t.groupHolds(objects) }
