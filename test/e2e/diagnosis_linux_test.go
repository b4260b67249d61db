package e2e

import (
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// idler ends when there is something to read, and reads nothing.
var idler = role("idler", func() int {
	for {
		n, err := unix.Poll([]unix.PollFd{{Fd: 0, Events: unix.POLLIN}}, -1)
		if n > 0 {
			return 0
		}
		if err != unix.EINTR {
			return 1
		}
	}
})

// Other systems do not tell what is unread to who has written it.
func TestServerThatNeverReads(t *testing.T) {
	s := start(t, Options{Flags: []string{"--wire=stdio"}, Role: idler})
	s.Send(ping)
	s.ExpectEnd()
	s.ExpectExit(Status{})
	if !strings.Contains(s.Stderr(), "has read nothing of its standard input") {
		t.Errorf("standard error has\n%s", s.Stderr())
	}
}
