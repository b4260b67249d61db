package main

import (
	"time"

	"github.com/wireguardrun/wireguardrun/internal/proc"
)

const (
	// keepers is how often a keeper that was killed is replaced.
	keepers = 3
	// dismissal is how long the keeper's end is waited for.
	dismissal = 5 * time.Second
)

// keeping sees to it that a run has a keeper. Like life, it belongs to one
// goroutine; only the start itself is beside it.
type keeping struct {
	run       string         // the name of this run
	keeper    *proc.Keeper   // nil when there is none
	starting  chan newKeeper // where one that is being started comes, else nil
	dismissed *proc.Keeper   // one that was told to end, and may not have yet
	guarding  bool           // the keeper knows the server's group
	killed    int            // how many keepers have been killed
}

// newKeeper is a keeper that has started, or why not.
type newKeeper struct {
	keeper *proc.Keeper
	err    error
}

// start starts a keeper on a goroutine of its own; it comes on k.starting.
func (k *keeping) start() {
	started := make(chan newKeeper, 1)
	k.starting = started
	go func() {
		keeper, err := proc.StartKeeper(k.run)
		started <- newKeeper{keeper, err}
	}()
}

// await waits for a keeper that is being started: the server is to have one from
// its first process on.
func (k *keeping) await(s *say) {
	if k.starting != nil {
		k.started(<-k.starting, s)
	}
}

func (k *keeping) started(n newKeeper, s *say) {
	k.keeper, k.starting, k.guarding = n.keeper, nil, false
	if n.err != nil {
		s.warn().Err(n.err).Str(hintField, "it needs the program's own file, /dev/null, and /proc on Linux; --keeper=no if that is as it should be").
			Msg("no keeper: if wireguardrun is killed, the server may stay")
	}
}

// guard tells the keeper the server's group, once.
func (k *keeping) guard(t proc.Tree) {
	if k.keeper != nil && !k.guarding {
		k.guarding = true
		k.keeper.Guard(t)
	}
}

// ended is told the end of a child that is not the server.
func (k *keeping) ended(pid int, t proc.Tree, s *say) {
	k.await(s) // its end may be told before its start
	k.guard(t)
	if k.keeper == nil || pid != k.keeper.Pid() {
		return
	}
	k.keeper = nil
	if k.killed++; k.killed <= keepers {
		k.start()
		return
	}
	s.warn().Int("times", k.killed).
		Str(hintField, "what kills processes that it does not know should spare those called wgr-keeper").
		Msg("the keeper was killed again and is not replaced any more: if wireguardrun is killed, the server may stay")
}

// killLater leaves what is left of the server's group to the keeper.
func (k *keeping) killLater() {
	if k.keeper != nil {
		k.keeper.KillLater()
		k.keeper = nil
	}
}

// dismiss ends the keeper, if there is one.
func (k *keeping) dismiss() {
	if k.starting != nil {
		k.keeper, k.starting = (<-k.starting).keeper, nil
	}
	if k.keeper != nil {
		k.keeper.Dismiss()
		k.dismissed, k.keeper = k.keeper, nil
	}
}

// wait waits for the end of a keeper that was dismissed: where nobody adopts
// orphans, as in many containers, it would stay as a zombie. The events are
// those of the server, which tell it; nil if there was none.
func (k *keeping) wait(events <-chan proc.Event) {
	switch {
	case k.dismissed == nil:
		return
	case events == nil:
		k.dismissed.Wait()
		return
	}
	for limit := time.After(dismissal); ; {
		select {
		case e, ok := <-events:
			if !ok {
				k.dismissed.Wait() // it came too late for the waiter
				return
			}
			if e.Kind == proc.OtherExited && e.Pid == k.dismissed.Pid() {
				return
			}
		case <-limit:
			return
		}
	}
}
