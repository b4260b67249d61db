//go:build linux

package main

import (
	"fmt"
	"sync"
	"time"
)

// servers are what a client that dies leaves behind. Each has a child in its
// group and one in a session of its own.
var servers = []struct{ name, script string }{
	{"polite: ends with its input", "sleep 300 & setsid sleep 300 & echo ready >&4; exec cat <&3 >/dev/null"},
	{"ends at TERM", "sleep 300 & setsid sleep 300 & echo ready >&4; exec sleep 300"},
	{"stubborn: ignores TERM", "trap '' TERM HUP INT; sleep 300 & setsid sleep 300 & echo ready >&4; exec sleep 300"},
}

// measureDeaths measures from the SIGKILL of the client, which holds the pipes
// and is the parent of wireguardrun, until no process of the session is left.
func measureDeaths(guard, dir string, n int) error {
	var lock sync.Mutex
	times := make([][]time.Duration, len(servers))
	var failed error
	left := 0
	inTurns(len(servers), n, func(kind, i int) {
		s, err := open(dir, fmt.Sprintf("death-%d-%d", kind, i), guard, "--wire=fds", "--log-level=error", "--", "sh", "-c", servers[kind].script)
		if err == nil {
			defer s.end()
			err = s.waitLine("ready")
		}
		var took time.Duration
		if err == nil {
			begin := time.Now()
			s.killClient()
			for len(s.processes()) > 0 && time.Since(begin) < 20*time.Second {
				time.Sleep(10 * time.Millisecond)
			}
			took = time.Since(begin)
		}
		lock.Lock()
		defer lock.Unlock()
		if err != nil {
			failed = fmt.Errorf("%s: %w", servers[kind].name, err)
			return
		}
		left += len(s.processes())
		times[kind] = append(times[kind], took)
	})
	if failed != nil {
		return failed
	}
	heading("From the death of the client to an empty tree, %d sessions each, %d at once", n, atOnce)
	row("| server | median ms | worst ms |")
	row("|---|---|---|")
	for k, s := range servers {
		row("| %s | %d | %d |", s.name, quantile(times[k], 0.5).Milliseconds(), quantile(times[k], 1).Milliseconds())
	}
	row("\nprocesses left after 20 s: %d", left)
	return nil
}
