//go:build unix && !linux

package proc

import "golang.org/x/sys/unix"

// mostSignals is the number of the last signal that has a name on all of them.
const mostSignals = 31

func reserved(unix.Signal) bool { return false }
