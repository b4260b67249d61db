// Package proc starts a server, passes signals on to it and waits for its end.
// What the systems do differently is in the files that are named after them.
package proc

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"syscall"

	"github.com/wireguardrun/wireguardrun/internal/pipes"
)

// Command is a program that is ready to start.
type Command struct {
	Path string   // what to execute, from Look
	Args []string // the whole argument vector; Args[0] is the name as given
	Dir  string   // working directory; "" is ours
	Env  []string // the whole environment, as NAME=VALUE

	// MoreEnv, if not nil, returns variables that depend on what the child's
	// descriptors are in the child: inChild gives the handle of a number.
	MoreEnv func(inChild func(number int) pipes.Handle) []string

	// Files are the child's descriptors by number. They are borrowed, and
	// the child gets duplicates. None stands for the descriptor that this
	// process inherited under the same number, if any; inherited ones above
	// the end of Files are passed on in any case (Unix).
	Files []pipes.Handle

	// Terminal is a terminal of ours whose foreground is given to the
	// child's process group, or None. Borrowed.
	Terminal pipes.Handle

	// ListenPID sets LISTEN_PID to the child's own process id, for a server
	// that takes over the sockets which were passed to us (Unix).
	ListenPID bool
}

// Process is a child that was started. It leads a process group of its own.
type Process struct{ process }

func (c Command) environ(inChild func(int) pipes.Handle) []string {
	if c.MoreEnv == nil {
		return c.Env
	}
	return Environ(c.Env, c.MoreEnv(inChild), nil)
}

// CheckDir returns an *os.PathError with Op "chdir" when dir can't be a working
// directory. A start reports that like a program which is missing.
func CheckDir(dir string) error {
	st, err := os.Stat(dir)
	var at *os.PathError
	switch {
	case errors.As(err, &at):
		err = at.Err
	case err == nil && !st.IsDir():
		err = syscall.ENOTDIR
	case err == nil:
		err = mayEnter(dir)
	}
	if err != nil {
		return &os.PathError{Op: "chdir", Path: dir, Err: err}
	}
	return nil
}

// Start starts c.
func Start(c Command) (*Process, error) {
	p, err := start(c)
	if err != nil {
		return nil, err
	}
	return &Process{p}, nil
}

// Pid returns the child's process id.
func (p *Process) Pid() int { return p.pid() }

// Wait waits for the child's end, not for that of its descendants. It is to be
// called once.
func (p *Process) Wait() (Status, error) { return p.wait() }

// Signal sends sig to the child's process group.
func (p *Process) Signal(sig os.Signal) error { return p.signal(sig) }

// Status is how a child ended.
type Status struct {
	Code   int // exit status: 8 bits on Unix, 32 on Windows; 0 after a signal
	Signal int // number of the signal that ended it, or 0
}

// ErrNotFound is returned by Look for a name that is nowhere in PATH.
var ErrNotFound = errors.New("not found in PATH")

// Environ returns base with the assignments of set made in order. Of several
// values of one name the last counts; names without are those to remove.
func Environ(base, set, without []string) []string {
	env := make([]string, 0, len(base)+len(set))
	index := make(map[string]int, len(base)+len(set))
	for _, kv := range append(base[:len(base):len(base)], set...) {
		name, _, _ := strings.Cut(kv, "=")
		key := envKey(name)
		if at, seen := index[key]; seen {
			env[at] = kv
			continue
		}
		index[key] = len(env)
		env = append(env, kv)
	}
	for _, name := range without {
		if at, ok := index[envKey(name)]; ok {
			env[at] = ""
		}
	}
	kept := env[:0]
	for _, kv := range env {
		if kv != "" {
			kept = append(kept, kv)
		}
	}
	return kept
}

// Getenv returns the value of name in env, or "".
func Getenv(env []string, name string) string {
	for _, kv := range env {
		if n, v, ok := strings.Cut(kv, "="); ok && envKey(n) == envKey(name) {
			return v
		}
	}
	return ""
}

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
