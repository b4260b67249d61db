package demo

import (
	"bytes"
	"context"
	"errors"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// run plays the demo with the stand-in guard of that kind.
func run(t *testing.T, ctx context.Context, kind string) (stdout, stderr string, err error) {
	t.Helper()
	t.Setenv(guardVariable, kind)
	var out, diag bytes.Buffer
	err = Run(ctx, self(t), &out, &diag)
	return out.String(), diag.String(), err
}

func TestRunFailsWithoutProtection(t *testing.T) {
	stdout, _, err := run(t, testContext(t), "pass")
	if err == nil || !strings.Contains(err.Error(), "5 of 7 replies arrived, 6 stray lines on the wire") {
		t.Errorf("error %v", err)
	}
	verdict := stdout[strings.Index(stdout, "\nguarded: "):]
	want := "\nguarded: 5 of 7 replies arrived, 6 stray lines on the wire\n" +
		"         stray output on stderr instead: 0 lines\n"
	if verdict != want {
		t.Errorf("verdict %q, want %q", verdict, want)
	}
}

func TestRunShowsWhyTheGuardDidNotStart(t *testing.T) {
	_, stderr, err := run(t, testContext(t), "refuse")
	if err == nil || !strings.Contains(err.Error(), "exit status 125") {
		t.Errorf("error %v", err)
	}
	if !strings.Contains(stderr, "can't claim the wire") {
		t.Errorf("stderr %q", stderr)
	}
}

func TestRunWithoutBinary(t *testing.T) {
	var out bytes.Buffer
	missing := filepath.Join(t.TempDir(), "wireguardrun")
	err := Run(testContext(t), missing, &out, &out)
	if err == nil || !strings.Contains(err.Error(), "bare session") || !strings.Contains(err.Error(), "wireguardrun") {
		t.Errorf("error %v", err)
	}
	if out.Len() > 0 {
		t.Errorf("printed %q", out.String())
	}
}

func TestRunEndsWithItsContext(t *testing.T) {
	ctx, cancel := context.WithCancel(testContext(t))
	defer cancel()
	onHang(t, cancel)
	stdout, _, err := run(t, ctx, "hang")
	if !errors.Is(err, context.Canceled) {
		t.Errorf("error %v", err)
	}
	if stdout != "" {
		t.Errorf("printed %q", stdout)
	}
}

// A session that is cut off says why, not how.
func TestPlayTellsTheCause(t *testing.T) {
	ctx, cancel := context.WithCancelCause(testContext(t))
	defer cancel(nil)
	cause := errors.New("took too long")
	onHang(t, func() { cancel(cause) })
	env := append(os.Environ(), guardVariable+"=hang")
	s := play(ctx, env, []string{self(t), "--wire=fds", "--", "server"})
	if fault := s.fault(); !s.started || !errors.Is(fault, cause) {
		t.Errorf("started %v, fault %v", s.started, fault)
	}
}

// onHang calls stop once a hanging guard is up.
func onHang(t *testing.T, stop func()) {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan struct{})
	t.Setenv(hangVariable, listener.Addr().String())
	t.Cleanup(func() {
		_ = listener.Close()
		<-done
	})
	go func() {
		defer close(done)
		conn, err := listener.Accept()
		if err != nil {
			return
		}
		stop()
		// Open until the guard is gone, or it would end by itself.
		_, _ = conn.Read(make([]byte, 1))
		_ = conn.Close()
	}()
}

type brokenWriter struct{}

var errBroken = errors.New("no reader")

func (brokenWriter) Write([]byte) (int, error) { return 0, errBroken }

func TestRunReportsFailedOutput(t *testing.T) {
	t.Setenv(guardVariable, "pass")
	if err := Run(testContext(t), self(t), brokenWriter{}, brokenWriter{}); !errors.Is(err, errBroken) {
		t.Errorf("error %v", err)
	}
}

func TestPlainEnvironment(t *testing.T) {
	got := plainEnvironment([]string{
		"HOME=/h", "WIREGUARDRUN_OFF=1", "wireguardrun_in=3", "WIREGUARDRUN_RUN=a:b",
		"MY_WIREGUARDRUN_OUT=4", "=C:=C:\\", "WIREGUARDRUN_", "ODD",
	})
	want := []string{"HOME=/h", "WIREGUARDRUN_RUN=a:b", "MY_WIREGUARDRUN_OUT=4", "=C:=C:\\", "ODD"}
	if !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestRoleUnknown(t *testing.T) {
	for _, name := range []string{"", "Server", "client"} {
		if code, ok := Role(name); ok || code != 0 {
			t.Errorf("%q: %d, %v", name, code, ok)
		}
	}
}
