package proc

import (
	"os"
	"syscall"
)

var (
	terminate os.Signal = syscall.SIGTERM
	proceed   os.Signal // nothing is stopped here
)

// ending lists Ctrl-C and Ctrl-Break, which are passed on. Closing the
// console, logging off and shutting down (SIGTERM in Go) are told to every
// process that shares the console; catching them only lets us outlive the
// server.
func ending() []os.Signal { return []os.Signal{os.Interrupt, syscall.SIGTERM} }

func usual() []os.Signal  { return nil }
func others() []os.Signal { return nil }

func isTerminalStop(os.Signal) bool { return false }
func isContinue(os.Signal) bool     { return false }
func stoppedForTerminal(int) bool   { return false }
func stopSelf()                     {}
func isHangup(int) bool             { return false }
func hangupIgnored() bool           { return false }

// dieOf: no process dies of a signal here.
func dieOf(int) {}
