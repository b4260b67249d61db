package main

import (
	"errors"
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
	// look is how often the rest of a tree that is to end is looked for.
	look = 50 * time.Millisecond
	// lookOn is the same for a session whose launcher has ended and left the
	// server behind. It may be long: the end of a process that we have adopted
	// is told at once.
	lookOn = 500 * time.Millisecond
	// settled is how long after the server's start the remaining signals are
	// listened for: before that, its start needs the processors.
	settled = 100 * time.Millisecond
	// answer is how long after a stop was passed on the server's stop is its
	// answer.
	answer = 5 * time.Second
)

// life is one run of a server, from its start to the end of all that belongs
// to it. It belongs to the goroutine of session, but for firstStray, which the
// relay's callbacks use one at a time.
type life struct {
	cfg      config
	say      *say
	server   *proc.Process
	events   <-chan proc.Event // of the server; nil before its start
	tree     proc.Tree
	keeping  keeping
	signals  proc.Signals
	terminal pipes.Handle  // whose foreground the server has, or None
	in, out  pipes.Handle  // the wire; borrowed
	own      proc.Object   // the server's standard input
	extra    []proc.Object // its extra pair, if there is one
	relay    *relay.Relay  // nil when the server has the wire itself
	signs    <-chan client.Sign
	failed   chan error // of the wire, from the relay
	wireErr  error      // the first of them

	firstStray bool // the first stray output has been told
	unread     int  // bytes of the client that the server has left, without a relay

	ending     ending // of the server
	inputEnded bool
	clientGone bool
	groupAsked bool      // by us, to end
	stopAsked  time.Time // when a stop was passed on, with which we stop too

	stoppedByTerminal bool // the server was stopped for using the terminal; nobody else lets it go on
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
	time.AfterFunc(settled, l.signals.ListenAll)
	l.signs = client.Watch(client.Options{
		In: l.in, Out: l.out,
		Activity:      l.activity,
		Parent:        l.cfg.WatchParent,
		HangupIgnored: proc.HangupIgnored(),
	})
	events := l.events
	var ended <-chan struct{} // of the input, which a watcher does not see of a file
	if l.relay != nil {
		ended = l.relay.InputEnded()
	}
	for !l.over() {
		select {
		case sig := <-l.signals.C():
			l.pass(sig)
		case e, ok := <-events:
			if !ok {
				events = nil
				if l.ending.by == 0 {
					return proc.Status{}, errors.New("wait for the server: its end was not told")
				}
			}
			l.happened(e)
		case sign := <-l.signs:
			l.saw(sign)
		case <-ended:
			ended = nil
			l.saw(client.InputEnded)
		case k := <-l.keeping.starting:
			l.keeping.started(k, l.say)
			l.keeping.guard(l.tree)
		case err := <-l.failed:
			l.wireFailed(err)
		case <-l.limit:
			l.say.info().Stringer("after", l.cfg.EOFTimeout).Msg("the server still runs after the end of its input: it is asked to end")
			l.ending.ask(byLimit)
			l.end()
		case <-l.ask:
			l.end()
		case <-l.insist:
			l.kill()
			l.insist = nil
		case <-l.again:
			l.again = nil
		}
	}
	l.leave()
	return l.ending.status, l.wireErr
}

// over reports whether nothing is left to wait for. The server's end is the
// end of the session, but for two cases: a launcher has left the server behind
// in its group, or the client is gone and the tree has to go too.
func (l *life) over() bool {
	if l.ending.by == 0 || l.again != nil {
		return false
	}
	switch {
	case l.clientGone:
		if (l.ask != nil || l.insist != nil) && l.tree.Alive() {
			l.again = time.After(look)
		}
	case l.ending.status == proc.Status{} && !l.inputEnded:
		if l.tree.GroupAlive() && l.serves() {
			l.again = time.After(lookOn)
		}
	}
	return l.again == nil
}

// serves reports whether what is left of the server's group can still serve the
// client: it has what a server reads.
func (l *life) serves() bool {
	if l.relay == nil {
		return l.tree.GroupHolds(l.extra...)
	}
	if l.relay.Ended() {
		return false
	}
	switch l.relay.Side() {
	case relay.Unmodified:
		return l.tree.GroupHolds(l.own)
	case relay.Aware:
		return l.tree.GroupHolds(l.extra...)
	default:
		return l.tree.GroupHolds(append(l.extra, l.own)...)
	}
}

// leave takes care of what the server has left behind: its group is asked to
// end, and the keeper insists. Daemons that left the group are left alone.
func (l *life) leave() {
	l.keeping.await(l.say)
	switch {
	case l.clientGone || !l.tree.GroupAlive():
		l.keeping.dismiss()
		return
	case os.Getpid() == 1:
		defer l.keeping.dismiss() // it would end with us, as everything does
		defer l.tree.EndGroup()
	default:
		defer l.keeping.killLater()
	}
	if !l.groupAsked {
		l.tree.SignalGroup(proc.Terminate)
	}
	l.tree.SignalGroup(proc.Continue) // what is stopped can't end
}

// pass passes a signal on to the server's group, once.
func (l *life) pass(sig os.Signal) {
	switch {
	case proc.IsContinue(sig) && l.terminal != pipes.None:
		l.front = proc.GiveForeground(l.terminal, l.server)
	case proc.IsContinue(sig):
		l.stopAsked = time.Time{}
	case proc.IsTerminalStop(sig):
		l.stopAsked = time.Now()
	case proc.Ends(sig):
		l.ending.ask(bySignal)
		l.ending.signal = sig
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

// happened is told what has become of our children.
func (l *life) happened(e proc.Event) {
	switch e.Kind {
	case proc.Exited:
		l.clientGone = l.clientGone || l.clientEnds(e.Status) // no news for anybody
		l.ending.record(e.Status, l.clientGone, l.cfg.StopTimeout)
		if l.clientGone && l.insist == nil {
			l.end() // what it has left behind
		}
	case proc.Stopped:
		l.stopped(e.Signal)
	case proc.OtherExited:
		l.keeping.ended(e.Pid, l.tree, l.say)
		l.again = nil // it may have been the last
	}
}

// clientEnds reports whether the client is gone at the server's end. A process
// that is killed does not lose all its descriptors in one instant, so where
// something would be left behind, half a sign is given some time.
func (l *life) clientEnds(server proc.Status) bool {
	const looks, pause = 10, 10 * time.Millisecond
	for range looks {
		if client.Gone(l.in, l.out) {
			return true
		}
		// The end of a terminal's session is told by a signal first.
		half := client.Going(l.in, l.out) || proc.IsHangup(server.Signal)
		if !half || !l.tree.Alive() {
			return false
		}
		time.Sleep(pause)
	}
	return client.Gone(l.in, l.out)
}

// stopped is told that a signal has stopped the server. If that came from the
// keyboard, or is the answer to a stop that we passed on, we stop too, so that
// the shell gets its prompt. Whoever stops the server alone also lets it go on.
func (l *life) stopped(sig int) {
	ours := l.answers(sig, time.Now())
	l.stopAsked = time.Time{}
	switch {
	case ours && proc.StopsInVain(sig):
		// Whoever pressed the key would wait for both of us for ever.
		l.tree.SignalGroup(proc.Continue)
	case ours:
		l.takeForeground()
		proc.StopSelf()
	case proc.StoppedForTerminal(sig):
		l.stoppedByTerminal = true
		l.say.warn().Int("signal", sig).
			Str(hintField, "give it the wire by pipes, or start wireguardrun in the foreground").
			Msg("the server was stopped because it uses the terminal from the background")
	}
}

// answers reports whether a stop of the server is to stop us too. A server that
// does not heed what was passed on may be stopped by somebody else much later.
func (l *life) answers(sig int, now time.Time) bool {
	return l.terminal != pipes.None || !proc.StoppedForTerminal(sig) && now.Sub(l.stopAsked) < answer
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
	if l.noteFailure(err) {
		l.ending.ask(byWire)
		l.end()
	}
}

// noteFailure reports whether err is the first of the wire.
func (l *life) noteFailure(err error) bool {
	if l.wireErr != nil {
		return false
	}
	l.wireErr = wireFailure(err)
	return true
}

// deliver puts on the wire what the server has written before its end, however
// slowly the client reads. A signal that ends programs ends that too, and so
// does the client's end, whoever else may have the wire and not read it.
func (l *life) deliver(wire io.Closer) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		l.relay.Drain(drainQuiet, drainLimit)
	}()
	var limit <-chan time.Time
	for {
		if l.clientGone && limit == nil {
			limit = time.After(peace)
		}
		select {
		case <-done:
			select {
			case err := <-l.failed:
				l.noteFailure(err)
			default:
			}
			return
		case sign := <-l.signs:
			l.clientGone = l.clientGone || sign != client.InputEnded
		case <-limit:
			_ = wire.Close()
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
		if !l.inputEnded && l.cfg.EOFTimeout > 0 {
			l.limit = time.After(l.cfg.EOFTimeout)
		}
		l.inputEnded = true
		// The server we started was a launcher and has ended: now the session
		// that it left behind ends too, if the client is gone.
		if l.ending.by == 0 || !l.clientEnds(l.ending.status) {
			return
		}
		sign = client.NoReader
	}
	if l.clientGone {
		return
	}
	l.clientGone, l.ending.sign = true, sign
	l.ending.ask(byClient)
	l.say.info().Stringer("sign", sign).Msg("the client is gone: the server is ended")
	if l.wireErr == nil { // else all of the tree is asked by now
		l.ask = time.After(peace)
	}
}

// end asks for the end, and sees to it that it comes.
func (l *life) end() {
	l.ask, l.limit = nil, nil
	send := l.tree.Signal
	switch {
	case !l.wholly():
		send = l.tree.SignalGroup
	case l.groupAsked:
		send = l.tree.SignalRest
	}
	send(proc.Terminate)
	send(proc.Continue) // what is stopped can't end
	l.groupAsked = true
	if l.relay != nil {
		l.relay.EndInput()
	}
	l.insist = time.After(l.cfg.StopTimeout)
}

func (l *life) kill() {
	if l.wholly() {
		l.tree.Kill()
	} else {
		l.tree.KillGroup()
	}
}

// wholly reports whether the whole tree has to end. Otherwise only the server's
// group does: a client that is still there may want its daemons.
func (l *life) wholly() bool { return l.clientGone || l.wireErr != nil }

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
