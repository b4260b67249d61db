package proc

import (
	"fmt"
	"strings"
)

// IsInherited reports whether descriptor n is one that we were started with
// and that a child gets too. All of our own making are close-on-exec from the
// start. Windows passes no numbers on: false.
func IsInherited(n int) bool { return isInherited(n) }

// CloseInherited closes our copies of the descriptors above 2 that we were
// started with, after the child has got them: held by us they would keep the
// other ends from seeing the child's end of file.
func CloseInherited() { closeInherited() }

// FreePair returns the numbers under which the child gets the wire: 3 and 4,
// or the first pair of neighbours above that this process has not inherited
// and to which env gives no meaning.
func FreePair(env []string) (in, out int) {
	taken := spokenFor(env)
	for n := 3; ; n += 2 {
		if free(n, taken) && free(n+1, taken) {
			return n, n + 1
		}
	}
}

func free(n int, taken map[int]bool) bool { return !taken[n] && !IsInherited(n) }

// spokenFor returns the descriptor numbers that env names: the child would
// take what it finds there for something else, even when it is closed now.
func spokenFor(env []string) map[int]bool {
	taken := make(map[int]bool)
	var n, m int
	if _, err := fmt.Sscanf(Getenv(env, "NODE_CHANNEL_FD"), "%d", &n); err == nil {
		taken[n] = true
	}
	for _, word := range strings.Fields(Getenv(env, "MAKEFLAGS")) {
		_, fds, _ := strings.Cut(word, "=")
		switch {
		case !strings.HasPrefix(word, "--jobserver-auth=") && !strings.HasPrefix(word, "--jobserver-fds="):
		default:
			if _, err := fmt.Sscanf(fds, "%d,%d", &n, &m); err == nil {
				taken[n], taken[m] = true, true
			}
		}
	}
	if _, err := fmt.Sscanf(Getenv(env, "LISTEN_FDS"), "%d", &n); err == nil {
		for i := range min(n, 1024) {
			taken[3+i] = true
		}
	}
	return taken
}
