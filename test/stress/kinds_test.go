//go:build linux

package stress

import (
	"time"

	"golang.org/x/sys/unix"
)

// kind is a way in which sessions end, or are disturbed before they end.
type kind struct {
	name     string
	do       func(*session)
	ownGroup bool // the wrapper must not be in the client's group
	tty      bool // the wire is a terminal
}

var kinds = []kind{
	{name: "client: KILL", do: func(s *session) { s.killClient() }},
	{name: "client: TERM, INT or HUP", do: func(s *session) {
		s.clientEnds()
		s.send(s.client, s.askWord())
	}},
	{name: "client's group: KILL", do: func(s *session) {
		s.clientEnds()
		s.killed = !s.ownGroup
		s.send(-s.client, unix.SIGKILL)
	}},
	{name: "wrapper: KILL", do: func(s *session) { s.killWrapper(s.wrapper) }},
	{name: "wrapper's group: KILL", ownGroup: true, do: func(s *session) { s.killWrapper(-s.wrapper) }},
	{name: "wrapper: TERM, INT or HUP", do: func(s *session) { s.send(s.wrapper, s.askWord()) }},
	{name: "server: KILL", do: func(s *session) { s.toServer(unix.SIGKILL) }},
	{name: "server: TERM, INT or HUP", do: func(s *session) { s.toServer(s.askWord()) }},
	{name: "keeper: KILL", do: func(s *session) { s.toKeeper(unix.SIGKILL) }},
	{name: "keeper: TERM, INT or HUP", do: func(s *session) { s.toKeeper(s.askWord()) }},
	{name: "keeper: KILL, then wrapper: KILL", do: func(s *session) {
		s.toKeeper(unix.SIGKILL)
		s.killWrapper(s.wrapper)
	}},
	{name: "client closes its writing end", do: func(s *session) { s.order("close in") }},
	{name: "client closes its reading end", do: func(s *session) {
		// A polite server ends by itself before this counts.
		s.gone, s.all = true, s.stubborn
		s.order("close out")
	}},
	{name: "client closes both", do: func(s *session) {
		s.clientEnds()
		s.order("close out")
		s.order("close in")
	}},
	{name: "client closes standard error", do: func(s *session) { s.order("close err") }},
	{name: "client: STOP, CONT", do: func(s *session) { s.stopFor(s.client) }},
	{name: "wrapper: STOP, CONT", do: func(s *session) { s.stopFor(s.wrapper) }},
	{name: "server: STOP, CONT", do: func(s *session) {
		if server, _ := s.find(); server != 0 {
			s.stopFor(server)
		}
	}},
	{name: "keeper: STOP, CONT", do: func(s *session) {
		if _, keeper := s.find(); keeper != 0 {
			s.stopFor(keeper)
		}
	}},
	{name: "server's group: STOP, then client: KILL", do: func(s *session) {
		if server, _ := s.find(); server != 0 {
			s.send(-server, unix.SIGSTOP)
		}
		s.killClient()
	}},
	{name: "server's group: STOP, then wrapper: KILL", do: func(s *session) {
		if server, _ := s.find(); server != 0 {
			s.send(-server, unix.SIGSTOP)
		}
		s.killWrapper(s.wrapper)
	}},
	{name: "wrapper: STOP, then KILL", do: func(s *session) {
		s.send(s.wrapper, unix.SIGSTOP)
		s.pause()
		s.killWrapper(s.wrapper)
	}},
	{name: "terminal: server: KILL", tty: true, do: func(s *session) { s.toServer(unix.SIGKILL) }},
	{name: "terminal: wrapper: TERM, INT or HUP", tty: true, do: func(s *session) { s.send(s.wrapper, s.askWord()) }},
	{name: "terminal: client: KILL", tty: true, do: func(s *session) { s.killClient() }},
}

// finish ends what is still there after a kind has done its work.
func (s *session) finish() {
	switch choice := s.rng.IntN(4); {
	case s.gone || s.killed:
	case s.tty:
		s.note("then server KILL")
		s.toServer(unix.SIGKILL)
	case choice == 0:
		s.note("then wrapper KILL")
		s.killWrapper(s.wrapper)
	case choice == 1:
		s.note("then server KILL")
		s.toServer(unix.SIGKILL)
	default:
		s.note("then client KILL")
		s.killClient()
	}
}

func (s *session) send(pid int, sig unix.Signal) {
	s.note("%v", sig)
	_ = unix.Kill(pid, sig)
}

func (s *session) askWord() unix.Signal {
	return []unix.Signal{unix.SIGTERM, unix.SIGINT, unix.SIGHUP}[s.rng.IntN(3)]
}

// clientEnds is to be called before the client's end. If the server has ended,
// so has the session, by itself: its daemons may stay.
func (s *session) clientEnds() {
	s.all = s.all || s.serverLives()
	s.gone = true
}

// serverLives is true for a server too that is still to come.
func (s *session) serverLives() bool {
	group := s.serverGroup()
	return alive(s.wrapper) && (group == 0 || alive(group))
}

func (s *session) killClient() {
	s.clientEnds()
	s.send(s.client, unix.SIGKILL)
}

func (s *session) killWrapper(target int) {
	if alive(s.wrapper) {
		s.all = s.all || s.serverLives()
		s.killed = true
		s.send(target, unix.SIGKILL)
	}
}

func (s *session) toServer(sig unix.Signal) {
	if server, _ := s.find(); server != 0 {
		s.send(server, sig)
	}
}

// toKeeper waits for the new keeper, if the signal has ended it, since the
// wrapper may be next: both at one instant is more than two processes can guard
// against. A keeper that has only just been started does not ignore signals yet.
func (s *session) toKeeper(sig unix.Signal) {
	_, first := s.find()
	if first == 0 {
		return
	}
	s.send(first, sig)
	for limit := time.Now().Add(10 * time.Second); time.Now().Before(limit) && alive(s.wrapper); time.Sleep(time.Millisecond) {
		if alive(first) && ignores(first, sig) {
			return
		}
		if _, keeper := children(s.wrapper); keeper != 0 && keeper != first {
			return
		}
	}
}

func (s *session) stopFor(pid int) {
	s.send(pid, unix.SIGSTOP)
	time.Sleep(time.Duration(s.rng.IntN(100)) * time.Millisecond)
	s.send(pid, unix.SIGCONT)
}
