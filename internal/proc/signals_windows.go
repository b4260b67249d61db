package proc

import (
	"os"
	"syscall"
)

var (
	terminate os.Signal = request("please end")
	proceed   os.Signal // nothing is stopped here
)

// request is a signal of our own, which no console sends.
type request string

func (r request) String() string { return string(r) }
func (request) Signal()          {}

// consoleEnds is what Go makes of the end of the console, of a log-off and of a
// shutdown.
const consoleEnds = syscall.SIGTERM

// ending lists Ctrl-C and Ctrl-Break, which are one to Go and are passed on, and
// the end of the console, which every process that shares it is told: catching
// it only lets us outlive the server.
func ending() []os.Signal { return []os.Signal{os.Interrupt, consoleEnds} }

func usual() []os.Signal  { return nil }
func others() []os.Signal { return nil }

func isTerminalStop(os.Signal) bool { return false }
func isContinue(os.Signal) bool     { return false }
func stoppedForTerminal(int) bool   { return false }
func stopSelf()                     {}
func stopsInVain(int) bool          { return false }
func isHangup(int) bool             { return false }
func hangupIgnored() bool           { return false }

// dieOf: no process dies of a signal here.
func dieOf(int) {}
