//go:build unix

package e2e

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
)

// Who ends by a signal is seen to, by the same one.
func TestDeathBySignal(t *testing.T) {
	for _, sig := range []syscall.Signal{
		unix.SIGTERM, unix.SIGKILL, unix.SIGSEGV, unix.SIGUSR1, unix.SIGINT, unix.SIGHUP,
		unix.SIGQUIT, unix.SIGABRT, unix.SIGPIPE, unix.SIGALRM, unix.SIGTRAP, unix.SIGPROF,
	} {
		t.Run(sig.String(), func(t *testing.T) {
			t.Parallel()
			o := Options{Command: []string{"sh", "-c", fmt.Sprintf("echo stray; echo frame >&4; kill -%d $$", int(sig))}}
			stdout, stderr, status := run(t, o, "")
			if stdout != "frame\n" || stderr != "stray\n" || status != (Status{Signal: sig}) {
				t.Errorf("wire %q, standard error %q, %v, want signal %v", stdout, stderr, status, sig)
			}
		})
	}
}

// The server's core file is worth something, one of ours is not.
func TestNoCoreOfOurs(t *testing.T) {
	crash := func(bare bool) *session {
		s := start(t, prepared(Options{Bare: bare, Dir: t.TempDir(), Command: []string{"sh", "-c", "kill -SEGV $$"}}, "core"))
		s.ExpectExit(Status{Signal: unix.SIGSEGV})
		return s
	}
	dumped := func(s *session) bool { return s.cmd.ProcessState.Sys().(syscall.WaitStatus).CoreDump() }
	if !dumped(crash(true)) {
		t.Skip("no process leaves a core file here")
	}
	if dumped(crash(false)) {
		t.Error("wireguardrun left a core file of its own")
	}
}

// wantCaught waits until the server and its child have said that they got a
// signal that often, and checks it again at the end: see signalsAtEnd.
func wantCaught(s *session, sig syscall.Signal, times int) {
	s.t.Helper()
	for _, who := range []string{"server", "child"} {
		line := fmt.Sprintf("%s: %v\n", who, sig)
		ok := s.err.wait(limit(s.t), func(b *stream) bool { return strings.Count(string(b.data), line) >= times })
		if !ok {
			s.t.Fatalf("waiting for %q, %d times: %s", line, times, s.err.state())
		}
	}
}

// signalsAtEnd ends the session and compares the signals that came, of both
// the server and its child.
func signalsAtEnd(s *session, want ...syscall.Signal) {
	s.t.Helper()
	finish(s)
	var lines []string
	for _, sig := range want {
		lines = append(lines, fmt.Sprintf("child: %v\n", sig), fmt.Sprintf("server: %v\n", sig))
	}
	got := slices.Sorted(strings.Lines(s.Stderr()))
	if slices.Sort(lines); !slices.Equal(got, lines) {
		s.t.Errorf("signals were %q, want %q", got, lines)
	}
}

// A signal to us reaches the whole group of the server, once, and is not our
// end.
func TestSignalsForwarded(t *testing.T) {
	useRole(catcher)
	for _, whole := range []bool{false, true} {
		t.Run(fmt.Sprintf("to our group=%v", whole), func(t *testing.T) {
			s := startServer(t, Options{})
			order(s, "catch")
			send := func(sig syscall.Signal) {
				if !whole {
					s.Signal(sig)
				} else if err := syscall.Kill(-s.Pid(), sig); err != nil {
					t.Fatal(err)
				}
			}
			all := []syscall.Signal{unix.SIGTERM, unix.SIGINT, unix.SIGHUP}
			for _, sig := range all {
				send(sig)
				wantCaught(s, sig, 1)
			}
			for _, sig := range all { // a second one is no escalation
				send(sig)
				wantCaught(s, sig, 2)
			}
			signalsAtEnd(s, append(all, all...)...)
		})
	}
}

// A server that does nothing about a signal dies of it, and so do we.
func TestSignalEndsTheServer(t *testing.T) {
	for _, sig := range []syscall.Signal{unix.SIGTERM, unix.SIGINT, unix.SIGHUP} {
		t.Run(sig.String(), func(t *testing.T) {
			s := start(t, Options{Role: mirror})
			s.Send("ready\n")
			s.ExpectLine("ready")
			s.Signal(sig)
			s.ExpectEnd()
			s.ExpectExit(Status{Signal: sig})
			wantStderr(s, "")
		})
	}
}

// What nohup and shells without job control set stays set, for us and for the
// server.
func TestIgnoredSignals(t *testing.T) {
	useRole(catcher)
	for _, tt := range []struct {
		ignored []syscall.Signal
	}{
		{nil},
		{[]syscall.Signal{unix.SIGHUP}},
		{[]syscall.Signal{unix.SIGINT}},
		{[]syscall.Signal{unix.SIGHUP, unix.SIGINT}},
	} {
		t.Run(fmt.Sprint(tt.ignored), func(t *testing.T) {
			t.Parallel()
			var steps []string
			var numbers []int
			for _, sig := range tt.ignored {
				steps = append(steps, fmt.Sprintf("ignore:%d", int(sig)))
				numbers = append(numbers, int(sig))
			}
			s := start(t, prepared(Options{Role: server}, steps...))
			if got := askReport(s).Ignored; !slices.Equal(got, numbers) {
				t.Errorf("the server ignores signals %v, want %v", got, numbers)
			}
			order(s, "catch") // undoes that, so that it can tell
			want := []syscall.Signal{unix.SIGTERM}
			for _, sig := range []syscall.Signal{unix.SIGHUP, unix.SIGINT} {
				s.Signal(sig)
				if !slices.Contains(tt.ignored, sig) {
					wantCaught(s, sig, 1)
					want = append(want, sig)
				}
			}
			s.Signal(unix.SIGTERM) // later than all that might have come
			wantCaught(s, unix.SIGTERM, 1)
			signalsAtEnd(s, want...)
		})
	}
}

// A daemon that the server leaves behind may keep the streams that it was
// given for as long as it likes.
func TestDaemonLeftBehind(t *testing.T) {
	useRole(daemon)
	for _, flag := range []string{"--stray=stderr", "--stray=null", "--stray=log", "--stray=file:stray"} {
		for _, kind := range []string{"pipe", "file"} {
			t.Run(flag+"/stderr is a "+kind, func(t *testing.T) {
				t.Parallel() // each waits for a moment of silence
				dir := t.TempDir()
				o := Options{Dir: dir, Flags: []string{flag}}
				if kind == "file" {
					o.StderrTo = createFile(t, filepath.Join(dir, "stderr"))
				}
				s := startServer(t, o)
				pid := number(ask(s, "daemon"))
				s.Send("exit 3\n")
				// Wait sees the end of the streams too: the daemon has none
				// that is the client's, but for a file.
				s.ExpectExit(Status{Code: 3})
				if err := syscall.Kill(pid, 0); err != nil {
					t.Errorf("the daemon was not to be ended: %v", err)
				}
				if err := syscall.Kill(pid, unix.SIGKILL); err != nil {
					t.Error(err)
				}
			})
		}
	}
}
