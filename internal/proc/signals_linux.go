package proc

import "golang.org/x/sys/unix"

// mostSignals is the number of the last real-time signal.
const mostSignals = 64

// reserved are the signals that C libraries keep for themselves (signal(7)).
func reserved(sig unix.Signal) bool { return sig == 32 || sig == 33 || sig == 34 }
