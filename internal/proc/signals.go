package proc

import (
	"os"
	"os/signal"
	"slices"
)

// Signals are those that are passed on to the server.
type Signals struct{ caught chan os.Signal }

// ListenForward starts to collect the signals that people and programs send
// most: none of them may be lost between here and the start, or end us in the
// server's place. Those that were ignored at our start stay ignored, by us and
// by the server (nohup): catching one would give it back its default action
// there.
func ListenForward() Signals {
	s := Signals{make(chan os.Signal, 64)}
	s.listen(ending())
	s.listen(usual())
	return s
}

// ListenAll starts to collect all others too. Each costs a hand-shake between
// two threads, so this is for when the server's own start is over.
func (s Signals) ListenAll() { s.listen(others()) }

// C returns the signals that have come, in order.
func (s Signals) C() <-chan os.Signal { return s.caught }

func (s Signals) listen(list []os.Signal) {
	for _, sig := range list {
		if !signal.Ignored(sig) {
			signal.Notify(s.caught, sig)
		}
	}
}

// Ends reports whether sig is one of those that end programs.
func Ends(sig os.Signal) bool { return slices.Contains(ending(), sig) }

// IsTerminalStop reports whether sig is the key that stops a job.
func IsTerminalStop(sig os.Signal) bool { return isTerminalStop(sig) }

// IsContinue reports whether sig lets a stopped process go on.
func IsContinue(sig os.Signal) bool { return isContinue(sig) }

// StoppedForTerminal reports whether signal number sig stops a process that
// reads or writes the terminal from the background.
func StoppedForTerminal(sig int) bool { return stoppedForTerminal(sig) }

// StopsInVain reports whether a stop by signal number sig would have had no
// effect without us. From the keyboard the system stops no orphaned group, one
// that has no shell to continue it, such as that of a container's first process.
// In its own group the server does stop, because we are its parent.
func StopsInVain(sig int) bool { return stopsInVain(sig) }

// IsHangup reports whether signal number sig is what the end of a terminal
// sends.
func IsHangup(sig int) bool { return isHangup(sig) }

// Terminate asks a server to end; Continue lets a stopped one go on, so that it
// sees that.
var (
	Terminate = terminate
	Continue  = proceed
)

// StopSelf stops this process until somebody continues it.
func StopSelf() { stopSelf() }

// HangupIgnored reports whether we were started with SIGHUP ignored.
func HangupIgnored() bool { return hangupIgnored() }

// DieOf ends this process by signal sig, so that whoever waits for it sees
// what became of the child. It returns when that is not possible.
func DieOf(sig int) { dieOf(sig) }
