package e2e

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
)

// settledKeeper waits for the keeper, and until it has let go of what it was
// started with.
func settledKeeper(s *session, but ...int) int {
	s.t.Helper()
	keeper := awaitKeeper(s, but...)
	eventually(s.t, "the keeper to be settled", func() bool {
		status, _ := os.ReadFile(fmt.Sprintf("/proc/%d/status", keeper))
		_, rest, _ := strings.Cut(string(status), "SigIgn:")
		var ignored uint64
		fmt.Sscanf(rest, "%x", &ignored)
		return ignored&(1<<(unix.SIGTERM-1)) != 0
	})
	return keeper
}

// Somebody who kills every keeper is told what that means.
func TestKeeperKilledAgain(t *testing.T) {
	t.Parallel()
	f := startFamily(t, Options{RoleArgs: []string{"eof:stay"}})
	f.ExpectLine("ready")
	var keepers []int
	for range 4 {
		keeper := awaitKeeper(f.session, keepers...)
		keepers = append(keepers, keeper)
		if err := syscall.Kill(keeper, unix.SIGKILL); err != nil {
			t.Fatal(err)
		}
	}
	f.WaitStderr("the keeper was killed again and is not replaced any more")
	f.Send("echo on\n")
	f.ExpectLine("on")
	if left := keepersOf(f.session); len(left) > 0 {
		t.Errorf("there is the keeper %v", left)
	}
	f.Signal(unix.SIGTERM)
	f.ExpectExit(Status{Signal: unix.SIGTERM})
}

// An update replaces the file of a program that runs.
func TestKeeperOfAReplacedProgram(t *testing.T) {
	t.Parallel()
	program := filepath.Join(t.TempDir(), "program")
	// Not by this process: what others start meanwhile would hold it open for
	// writing, and keep it from being executed.
	if text, err := exec.Command("cp", wireguardrun, program).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, text)
	}
	f := startFamily(t, Options{
		Prefix:   []string{"sh", "-c", fmt.Sprintf(`exec '%s' "$@"`, program)},
		RoleArgs: []string{"term:stay", "eof:stay"},
	}, everyKin...)
	f.ExpectLine("ready")
	if err := os.Remove(program); err != nil {
		t.Fatal(err)
	}
	writeFile(t, program, "#!/bin/false\n")
	first := awaitKeeper(f.session)
	if err := syscall.Kill(first, unix.SIGKILL); err != nil {
		t.Fatal(err)
	}
	second := settledKeeper(f.session, first)
	if name, err := os.ReadFile(fmt.Sprintf("/proc/%d/comm", second)); string(name) != "wgr-keeper\n" {
		t.Errorf("it is called %q, %v", name, err)
	}
	f.Signal(unix.SIGKILL)
	f.WaitExit()
	f.allGone()
}

// As process 1 we are the last that can give the rest of a group its time. It
// takes more of it than we wait for the last output.
func TestProcessOneAwaitsTheRest(t *testing.T) {
	t.Parallel()
	s := inNamespace(t, Options{Command: []string{"sh", "-c", `
		(trap 'sleep 1.5; echo saved >&2; exit' TERM
		echo up >&4
		while :; do sleep 0.02; done) &
		read word <&3
		exit 6`}})
	s.ExpectLine("up")
	s.Send("end\n")
	if got := s.WaitExit(); got != (Status{Code: 6}) {
		t.Errorf("%v, want 6", got)
	}
	s.WaitStderr("saved\n")
}

// Who does not wait for the server any more may still want its daemons.
func TestEOFTimeoutLeavesDaemons(t *testing.T) {
	t.Parallel()
	f := startFamily(t, Options{
		Flags:    []string{"--eof-timeout=100ms", "--stop-timeout=100ms"},
		RoleArgs: []string{"eof:stay", "term:stay"},
	}, "group-stubborn", "setsid", "double")
	f.ExpectLine("ready")
	f.CloseStdin()
	if got := f.WaitExit(); got != (Status{Signal: unix.SIGKILL}) {
		t.Errorf("%v, want death by KILL", got)
	}
	f.isGone(0)
	f.isGone(1)
	f.lives(2)
	f.lives(3)
}
