package main

import (
	"errors"
	"os"
	"time"

	"github.com/wireguardrun/wireguardrun/internal/client"
	"github.com/wireguardrun/wireguardrun/internal/pipes"
	"github.com/wireguardrun/wireguardrun/internal/proc"
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
	tree     proc.Tree
	keeper   *proc.Keeper      // nil when there is none
	starting chan *proc.Keeper // where one that is being started comes, else nil
	replaced int               // keepers that were
	signals  proc.Signals
	terminal pipes.Handle // whose foreground the server has, or None
	in, out  pipes.Handle // the wire; borrowed

	status     *proc.Status // of the server, once it has ended
	inputEnded bool
	clientGone bool
	stopping   bool // a stop was passed on, and we stop with the server

	stoppedByTerminal bool // the server is, and only we know

	limit  <-chan time.Time // of --eof-timeout
	ask    <-chan time.Time // when the tree is asked to end
	insist <-chan time.Time // when it is killed
	again  <-chan time.Time // when to look whether the rest has ended
}

// live sees to the server until nothing is left to do, and returns its status.
func (l *life) live() (proc.Status, error) {
	l.startKeeper()
	go l.signals.ListenAll()
	go proc.CloseInherited()
	signs := client.Watch(client.Options{
		In: l.in, Out: l.out,
		Activity:      func() uint64 { return uint64(pipes.Unread(l.in)) },
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
		case l.keeper = <-l.starting:
			l.starting = nil
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
	return *l.status, nil
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
		on = l.tree.GroupAlive() && l.tree.GroupHolds(uintptr(l.in), uintptr(l.out))
	}
	if on {
		l.again = time.After(look)
	}
	return !on
}

// leave takes care of what the server has left behind: its group is asked to
// end, and the keeper insists. Daemons that left the group are left alone.
func (l *life) leave(events <-chan proc.Event) {
	if l.starting != nil {
		l.keeper = <-l.starting
	}
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
			if !ok || e.Kind == proc.OtherExited && e.Pid == l.keeper.Pid() {
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
		proc.GiveForeground(l.terminal, l.server)
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
		if l.clientGone && l.insist == nil {
			l.end() // what it has left behind
		}
	case proc.Stopped:
		l.stopped(e.Signal)
	case proc.OtherExited:
		if l.keeper != nil && e.Pid == l.keeper.Pid() {
			l.keeper = nil
			if l.replaced++; l.replaced <= keepers {
				l.startKeeper()
			}
		}
	}
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

// startKeeper starts one beside everything else: the server does not wait for
// it, and a short run does not either.
func (l *life) startKeeper() {
	if !l.cfg.Keeper {
		return
	}
	started := make(chan *proc.Keeper, 1)
	l.starting = started
	go func() {
		k, err := proc.StartKeeper(l.tree)
		if err != nil {
			l.say.warn().Err(err).Msg("no keeper: if wireguardrun is killed, the server may stay")
		}
		started <- k
	}()
}

func (l *life) takeForeground() {
	if l.terminal == pipes.None {
		return
	}
	if err := proc.TakeForeground(l.terminal); err != nil {
		l.say.warn().Err(err).Msg("cannot take the terminal back")
	}
}
