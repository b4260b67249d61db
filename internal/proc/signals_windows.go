package proc

import (
	"os"
	"os/signal"
	"syscall"
)

// listenForward passes Ctrl-C and Ctrl-Break on. Closing the console, logging
// off and shutting down (SIGTERM in Go) are told to every process that shares
// the console; catching them only lets us outlive the server.
func listenForward() <-chan os.Signal {
	caught := make(chan os.Signal, 16)
	signal.Notify(caught, os.Interrupt)
	signal.Notify(make(chan os.Signal, 1), syscall.SIGTERM)
	return caught
}

// dieOf: no process dies of a signal here.
func dieOf(int) {}
