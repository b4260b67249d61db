//go:build unix && !linux

package proc

import (
	"os/signal"

	"golang.org/x/sys/unix"
)

// setDefault asks Go's runtime, which honours it for the signals that end a
// program: HUP, INT, TERM, PIPE and the like.
func setDefault(sig unix.Signal) error {
	signal.Reset(sig)
	return nil
}

func leaveNoCore() error {
	return unix.Setrlimit(unix.RLIMIT_CORE, &unix.Rlimit{})
}
