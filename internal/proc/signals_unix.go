//go:build unix

package proc

import (
	"os"
	"os/signal"

	"golang.org/x/sys/unix"
)

func listenForward() <-chan os.Signal {
	caught := make(chan os.Signal, 16)
	for _, sig := range []os.Signal{unix.SIGTERM, unix.SIGINT, unix.SIGHUP} {
		if !signal.Ignored(sig) {
			signal.Notify(caught, sig)
		}
	}
	return caught
}
