//go:build unix && !linux

package proc

import (
	"os/signal"
	"time"

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

// raise sends sig to this process, and waits for the thread that takes it.
func raise(sig unix.Signal) {
	if unix.Getpid() != 1 && unix.Kill(unix.Getpid(), sig) == nil {
		time.Sleep(time.Second)
	}
}
