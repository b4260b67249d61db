// Package demo is the command "wireguardrun demo": an embedded noisy server
// and a client that talks to it twice, bare and guarded, and shows side by
// side what arrived.
//
// Nothing in it waits for time. The server answers in the order in which it is
// asked, so a reply that has not come when the session ends is lost.
package demo

import (
	"context"
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
	"time"
)

// sessionLimit ends sessions that hang. A sound one takes a few process starts.
const sessionLimit = 10 * time.Second

// Run plays the same client script against the noisy server twice, bare and
// under the guard, and writes what the client received to stdout. self is the
// path of the wireguardrun binary, which is guard and server in one.
//
// The error is nil only if the guarded session ended well, its wire carried
// nothing but frames, and every reply arrived, in order. If not, what that
// session printed on its standard error is copied to stderr. Run owns neither
// writer.
func Run(ctx context.Context, self string, stdout, stderr io.Writer) error {
	limited, cancel := context.WithTimeoutCause(ctx, sessionLimit,
		fmt.Errorf("not finished after %v", sessionLimit))
	defer cancel()

	server := []string{self, "demo", "--role=" + roleServer}
	guard := []string{self, "--wire=fds", "--"}
	env := plainEnvironment(os.Environ())

	var bare, guarded *session
	var both sync.WaitGroup
	both.Go(func() { bare = play(limited, env, server) })
	both.Go(func() { guarded = play(limited, env, append(guard, server...)) })
	both.Wait()

	if ctx.Err() != nil {
		return fmt.Errorf("demo: stopped: %w", context.Cause(ctx))
	}
	if !bare.started {
		return fmt.Errorf("demo: bare session: %w", bare.err)
	}
	if _, err := io.WriteString(stdout, newScreen(stdout).render(bare, guarded)); err != nil {
		return fmt.Errorf("demo: write to stdout: %w", err)
	}
	if fault := guarded.fault(); fault != nil {
		_, _ = stderr.Write(guarded.stderr.Bytes())
		return fmt.Errorf("demo: guarded session: %w", fault)
	}
	return nil
}

// plainEnvironment is env without our own settings and hand-over, so that the
// caller's neither guard the bare session nor change the guarded one. The run
// nonces stay: by them an outer keeper finds what belongs to it.
func plainEnvironment(env []string) []string {
	var plain []string
	for _, entry := range env {
		// Names have no case on Windows.
		name, _, _ := strings.Cut(strings.ToUpper(entry), "=")
		if !strings.HasPrefix(name, "WIREGUARDRUN_") || name == "WIREGUARDRUN_RUN" {
			plain = append(plain, entry)
		}
	}
	return plain
}
