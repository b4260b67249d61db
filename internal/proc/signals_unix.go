//go:build unix

package proc

import (
	"os"
	"os/signal"

	"golang.org/x/sys/unix"
)

// ListenForward starts to collect the signals that are passed on to the
// server. Those that were ignored at our start stay ignored, by us and by the
// server (nohup): catching one would give it back its default action there.
func ListenForward() <-chan os.Signal {
	caught := make(chan os.Signal, 16)
	for _, sig := range []os.Signal{unix.SIGTERM, unix.SIGINT, unix.SIGHUP} {
		if !signal.Ignored(sig) {
			signal.Notify(caught, sig)
		}
	}
	return caught
}
