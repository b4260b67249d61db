package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/wireguardrun/wireguardrun/internal/client"
	"github.com/wireguardrun/wireguardrun/internal/pipes"
	"github.com/wireguardrun/wireguardrun/internal/proc"
	"github.com/wireguardrun/wireguardrun/internal/relay"
)

const (
	// peace is how long a server has, once its client is gone, to end by
	// itself: it sees the end of its input.
	peace = 2 * time.Second
	// look is how often the rest of a process group is looked for.
	look = 50 * time.Millisecond
	// dismissal is how long the keeper's end is waited for.
	dismissal = 100 * time.Millisecond
	// keepers is how often a keeper that was killed is replaced.
	keepers = 3
)

// life is one run of a server, from its start to the end of all that belongs
// to it. Everything happens on one goroutine, in live.
type life struct {
	cfg      config
	say      *say
	server   *proc.Process
	run      string // the name of this run
	tree     proc.Tree
	keeper   *proc.Keeper      // nil when there is none
	starting chan *proc.Keeper // where one that is being started comes, else nil
	guarding bool              // the keeper knows the server's group
	replaced int               // keepers that were
	signals  proc.Signals
	terminal pipes.Handle // whose foreground the server has, or None
	in, out  pipes.Handle // the wire; borrowed
	holding  []uintptr    // what a member of the server's group holds that serves
	relay    *relay.Relay // nil when the server has the wire itself
	failed   chan error   // of the wire, from the relay
	wireErr  error        // the first of them

	status     *proc.Status // of the server, once it has ended
	inputEnded bool
	clientGone bool
	stopping   bool // a stop was passed on, and we stop with the server

	stoppedByTerminal bool // the server is, and only we know
	front             bool // the server has the foreground from us

	limit  <-chan time.Time // of --eof-timeout
	ask    <-chan time.Time // when the tree is asked to end
	insist <-chan time.Time // when it is killed
	again  <-chan time.Time // when to look whether the rest has ended
}

// live sees to the server until nothing is left to do, and returns its status.
func (l *life) live() (proc.Status, error) {
	l.front = l.terminal != pipes.None
	go proc.CloseInherited()
	go l.signals.ListenAll()
	signs := client.Watch(client.Options{
		In: l.in, Out: l.out,
		Activity:      l.activity,
		Parent:        l.cfg.WatchParent,
		HangupIgnored: proc.HangupIgnored(),
	})
	events := l.server.Events()
	for !l.over() {
		select {
		case sig := <-l.signals.C():
			l.pass(sig)
		case e, ok := <-events:
			if !ok {
				events = nil
				if l.status == nil {
					return proc.Status{}, errors.New("wait for the server: its end was not told")
				}
			}
			l.happened(e)
		case sign := <-signs:
			l.saw(sign)
		case k := <-l.starting:
			l.keeperStarted(k)
			l.guard()
		case err := <-l.failed:
			l.wireFailed(err)
		case <-l.limit:
			l.say.info().Dur("after", l.cfg.EOFTimeout).Msg("the server still runs after the end of its input: it is ended")
			l.end()
		case <-l.ask:
			l.end()
		case <-l.insist:
			l.tree.Kill()
			l.insist = nil
		case <-l.again:
			l.again = nil
		}
	}
	l.leave(events)
	return *l.status, l.wireErr
}

// over reports whether nothing is left to wait for. The server's end is the
// end of the session, but for two cases: a launcher has left the server behind
// in its group, or the client is gone and the tree has to go too.
func (l *life) over() bool {
	if l.status == nil || l.again != nil {
		return false
	}
	var on bool
	switch {
	case l.clientGone:
		on = l.insist != nil && l.tree.Alive()
	case *l.status == proc.Status{} && !l.inputEnded:
		on = l.tree.GroupAlive() && l.tree.GroupHolds(l.holding...)
	}
	if on {
		l.again = time.After(look)
	}
	return !on
}

// leave takes care of what the server has left behind: its group is asked to
// end, and the keeper insists. Daemons that left the group are left alone.
func (l *life) leave(events <-chan proc.Event) {
	l.awaitKeeper()
	left := !l.clientGone && l.tree.GroupAlive()
	if left {
		l.tree.SignalGroup(proc.Terminate)
	}
	switch {
	case l.keeper == nil:
	case left:
		l.keeper.KillLater()
	default:
		l.dismissKeeper(events)
	}
}

// dismissKeeper ends the keeper and waits for that: where nobody adopts
// orphans, as in many containers, it would stay as a zombie.
func (l *life) dismissKeeper(events <-chan proc.Event) {
	l.keeper.Dismiss()
	for limit := time.After(dismissal); ; {
		select {
		case e, ok := <-events:
			if !ok {
				l.keeper.Wait() // it came too late for the waiter
				return
			}
			if e.Kind == proc.OtherExited && e.Pid == l.keeper.Pid() {
				return
			}
		case <-limit:
			return
		}
	}
}

// pass passes a signal on to the server's group, once.
func (l *life) pass(sig os.Signal) {
	switch {
	case proc.IsContinue(sig) && l.terminal != pipes.None:
		l.front = proc.GiveForeground(l.terminal, l.server)
	case proc.IsTerminalStop(sig):
		l.stopping = true
	}
	if err := l.server.Signal(sig); err != nil {
		l.say.debug().Err(err).Msg("signal not passed on")
	}
	if l.stoppedByTerminal && !proc.IsTerminalStop(sig) {
		// Nobody else will let it go on to see the signal.
		l.tree.SignalGroup(proc.Continue)
		l.stoppedByTerminal = false
	}
}

// happened is told what became of our children.
func (l *life) happened(e proc.Event) {
	switch e.Kind {
	case proc.Exited:
		l.status = &e.Status
		if !l.clientGone && l.clientEnds() {
			l.clientGone = true // no news for anybody
		}
		if l.clientGone && l.insist == nil {
			l.end() // what it has left behind
		}
	case proc.Stopped:
		l.stopped(e.Signal)
	case proc.OtherExited:
		l.awaitKeeper() // its end may be told before its start
		l.guard()
		if l.keeper != nil && e.Pid == l.keeper.Pid() {
			l.keeper = nil
			if l.replaced++; l.replaced <= keepers {
				l.startKeeper()
			}
		}
	}
}

// clientEnds reports whether the client is gone at the server's end. A process
// that is killed does not lose all its descriptors in one instant, so where
// something would be left behind, half a sign is given some time.
func (l *life) clientEnds() bool {
	const looks, pause = 10, 10 * time.Millisecond
	for range looks {
		if client.Gone(l.in, l.out) {
			return true
		}
		// The end of a terminal's session is told by a signal first.
		half := client.Going(l.in, l.out) || proc.IsHangup(l.status.Signal)
		if !half || !l.tree.Alive() {
			return false
		}
		time.Sleep(pause)
	}
	return client.Gone(l.in, l.out)
}

// stopped makes a stop of the server by the keyboard, or by a stop that we
// passed on, one of our own, so that the shell gets its prompt. Whoever stops
// the server alone also lets it go on.
func (l *life) stopped(sig int) {
	switch {
	case l.terminal != pipes.None:
		l.takeForeground()
		proc.StopSelf()
	case l.stopping:
		proc.StopSelf()
	case proc.StoppedForTerminal(sig):
		l.stoppedByTerminal = true
		l.say.warn().Int("signal", sig).
			Str(hintField, "give it the wire by pipes, or start wireguardrun in the foreground").
			Msg("the server was stopped because it uses the terminal from the background")
	}
	l.stopping = false
}

// activity changes with what comes from the client, as far as we see it.
func (l *life) activity() uint64 {
	if l.relay != nil {
		return l.relay.Inbound()
	}
	n, _ := pipes.Unread(l.in)
	return uint64(n)
}

// wireFailed ends the server: without the wire it serves nobody.
func (l *life) wireFailed(err error) {
	if l.wireErr != nil {
		return
	}
	l.wireErr = fmt.Errorf("the wire fails: %w", err)
	l.end()
}

// deliver puts on the wire what the server has written before its end, however
// slowly the client reads. A signal that ends programs ends that too.
func (l *life) deliver(wire io.Closer) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		l.relay.Drain(drainQuiet, drainLimit)
	}()
	for {
		select {
		case <-done:
			return
		case sig := <-l.signals.C():
			if proc.Ends(sig) {
				_ = wire.Close()
			}
		}
	}
}

// saw is told a sign of the client.
func (l *life) saw(sign client.Sign) {
	if sign == client.InputEnded {
		l.inputEnded = true
		if l.cfg.EOFTimeout > 0 {
			l.limit = time.After(l.cfg.EOFTimeout)
		}
		return
	}
	if l.clientGone {
		return
	}
	l.clientGone = true
	l.say.info().Stringer("sign", sign).Msg("the client is gone: the server is ended")
	l.ask = time.After(peace)
}

// end asks the whole tree to end, and sees to it that it does.
func (l *life) end() {
	l.ask, l.limit = nil, nil
	l.tree.Signal(proc.Terminate)
	l.tree.Signal(proc.Continue) // what is stopped can't end
	l.insist = time.After(l.cfg.StopTimeout)
}

// startKeeper starts one beside everything else.
func (l *life) startKeeper() {
	if !l.cfg.Keeper {
		return
	}
	started := make(chan *proc.Keeper, 1)
	l.starting = started
	go func() {
		k, err := proc.StartKeeper(l.run)
		if err != nil {
			l.say.warn().Err(err).Msg("no keeper: if wireguardrun is killed, the server may stay")
		}
		started <- k
	}()
}

// awaitKeeper waits for one that is being started: not even the first process
// of a server is to be without.
func (l *life) awaitKeeper() {
	if l.starting != nil {
		l.keeperStarted(<-l.starting)
	}
}

func (l *life) keeperStarted(k *proc.Keeper) { l.keeper, l.starting, l.guarding = k, nil, false }

// guard tells the keeper the server's group, once.
func (l *life) guard() {
	if l.keeper != nil && !l.guarding {
		l.guarding = true
		l.keeper.Guard(l.tree)
	}
}

// dropKeeper ends the keeper of a server that has not started.
func (l *life) dropKeeper() {
	if l.awaitKeeper(); l.keeper != nil {
		l.keeper.Dismiss()
		l.keeper.Wait()
	}
}

// takeForeground takes back what the server has from us. A shell that has put
// us into the background keeps its own.
func (l *life) takeForeground() {
	if !l.front {
		return
	}
	l.front = false
	if err := proc.TakeForeground(l.terminal); err != nil {
		l.say.warn().Err(err).Msg("cannot take the terminal back")
	}
}
