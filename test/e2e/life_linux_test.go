package e2e

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// procStat is what the system tells of a process.
type procStat struct {
	state                  byte
	parent, group, session int
}

func statOf(pid int) (s procStat, ok bool) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return s, false
	}
	rest := text[bytes.LastIndexByte(text, ')')+2:]
	n, _ := fmt.Sscanf(string(rest), "%c %d %d %d", &s.state, &s.parent, &s.group, &s.session)
	return s, n == 4
}

func cmdline(pid int) string {
	text, _ := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid))
	return strings.ReplaceAll(string(text), "\x00", " ")
}

func childrenOf(parent int) []int {
	var list []int
	entries, _ := os.ReadDir("/proc")
	for _, e := range entries {
		var pid int
		if n, _ := fmt.Sscan(e.Name(), &pid); n != 1 {
			continue
		}
		if s, ok := statOf(pid); ok && s.parent == parent {
			list = append(list, pid)
		}
	}
	return list
}

// keepersOf returns the keepers that the session's wireguardrun has.
func keepersOf(s *session) []int {
	return slices.DeleteFunc(childrenOf(s.Pid()), func(pid int) bool {
		return !strings.HasPrefix(cmdline(pid), "wireguardrun: keeper ")
	})
}

// eventually waits for what no event tells.
func eventually(t testing.TB, what string, ready func() bool) {
	t.Helper()
	for end := limit(t); !ready(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("waiting for %s", what)
		}
	}
}

// awaitKeeper waits for a keeper that is none of but, and returns it. It is there
// once it runs under its own name: then it can end a tree.
func awaitKeeper(s *session, but ...int) int {
	s.t.Helper()
	var keepers []int
	eventually(s.t, "the keeper", func() bool {
		keepers = slices.DeleteFunc(keepersOf(s), func(pid int) bool { return slices.Contains(but, pid) })
		return len(keepers) > 0
	})
	if len(keepers) != 1 {
		s.t.Fatalf("there are the keepers %v, want one", keepers)
	}
	return keepers[0]
}

// A keeper that is killed first is replaced.
func TestKeeperKilledFirst(t *testing.T) {
	t.Parallel()
	f := startFamily(t, Options{RoleArgs: []string{"term:stay", "eof:stay"}}, everyKin...)
	f.ExpectLine("ready")
	var keepers []int
	for range 2 {
		keeper := awaitKeeper(f.session, keepers...)
		keepers = append(keepers, keeper)
		if err := syscall.Kill(keeper, unix.SIGKILL); err != nil {
			t.Fatal(err)
		}
	}
	awaitKeeper(f.session, keepers...)
	if err := syscall.Kill(-f.Pid(), unix.SIGKILL); err != nil {
		t.Fatal(err)
	}
	f.WaitExit()
	f.allGone()
}

// The keeper holds nothing that could keep anything busy or open.
func TestKeeperHoldsNothing(t *testing.T) {
	for range 5 { // it starts beside all else
		f := startFamily(t, Options{RoleArgs: []string{"eof:stay"}, Dir: t.TempDir()}, "group", "group")
		f.ExpectLine("ready")
		keeper := settledKeeper(f.session)
		dir := fmt.Sprintf("/proc/%d/", keeper)
		if cwd, err := os.Readlink(dir + "cwd"); cwd != "/" || err != nil {
			t.Errorf("it is in %q, %v", cwd, err)
		}
		if s, ok := statOf(keeper); !ok || s.session != keeper || s.group != keeper {
			t.Errorf("it is %d, with %+v", keeper, s)
		}
		env, err := os.ReadFile(dir + "environ")
		if string(env) != "GOMAXPROCS=1\x00GOGC=off\x00GODEBUG=containermaxprocs=0\x00" || err != nil {
			t.Errorf("it has the variables %q, %v", env, err)
		}
		entries, err := os.ReadDir(dir + "fd")
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range entries {
			link, err := os.Readlink(dir + "fd/" + e.Name())
			if err != nil {
				t.Fatal(err)
			}
			switch n := number(e.Name()); {
			case n < 3 && link != os.DevNull, n == 3 && !strings.HasPrefix(link, "pipe:"),
				n > 3 && !strings.HasPrefix(link, "anon_inode:"):
				t.Errorf("descriptor %d is %s", n, link)
			}
		}
		f.Signal(unix.SIGTERM)
		f.ExpectExit(Status{Signal: unix.SIGTERM})
		f.allGone()
	}
}

// TERM and the like to all of our name are for us, not for the keeper.
func TestKeeperOutlivesSignals(t *testing.T) {
	f := startFamily(t, Options{RoleArgs: []string{"term:stay", "eof:stay"}}, everyKin...)
	f.ExpectLine("ready")
	keeper := settledKeeper(f.session)
	for _, sig := range []syscall.Signal{unix.SIGTERM, unix.SIGHUP, unix.SIGINT, unix.SIGQUIT} {
		if err := syscall.Kill(keeper, sig); err != nil {
			t.Fatal(err)
		}
	}
	f.Signal(unix.SIGKILL)
	f.WaitExit()
	f.allGone()
}

// reaper adopts what its command leaves behind, and says how much that was.
var reaper = role("reaper", func() int {
	if err := unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0); err != nil {
		fmt.Fprintf(os.Stderr, "reaper: %v\n", err)
		return 1
	}
	_, argv := unwrap()
	for range 40 {
		cmd := exec.Command(argv[0], argv[1:]...)
		cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
		if err := cmd.Run(); err != nil {
			fmt.Fprintf(os.Stderr, "reaper: %v\n", err)
			return 1
		}
		for {
			var ws unix.WaitStatus
			pid, err := unix.Wait4(-1, &ws, unix.WNOHANG, nil)
			if err != nil {
				break
			}
			fmt.Fprintf(os.Stderr, "reaper: left behind: %d, %v, alive %v\n", pid, ws, pid == 0)
			return 2
		}
	}
	return 0
})

// Whoever starts us gets no process to wait for but us.
func TestNothingToReap(t *testing.T) {
	t.Parallel()
	stdout, stderr, status := run(t, wrapped(Options{Command: []string{"true"}}, reaper), "")
	if stdout != "" || stderr != "" || status != (Status{}) {
		t.Errorf("%q, %q, %v", stdout, stderr, status)
	}
}

// The keeper has gone when we have, after a longer run too.
func TestKeeperGoesWithUs(t *testing.T) {
	for range 5 {
		f := startFamily(t, Options{})
		f.ExpectLine("ready")
		keeper := awaitKeeper(f.session)
		finish(f.session)
		if s, ok := statOf(keeper); ok {
			t.Errorf("the keeper is still there: %c", s.state)
		}
	}
}

// Nobody finds a process by a mark that it has thrown away; while we live it
// is still ours.
func TestClientGoneBareKin(t *testing.T) {
	t.Parallel()
	f := startFamily(t, Options{Flags: []string{"--stop-timeout=200ms"}}, "bare-stubborn")
	f.ExpectLine("ready")
	f.CloseStdout()
	f.CloseStdin()
	f.WaitExit()
	f.allGone()
}

// inNamespace runs its command as process 1 of a PID namespace.
func inNamespace(t *testing.T, o Options) *session {
	t.Helper()
	unshare := []string{needs(t, "unshare"), "--fork", "--kill-child", "--pid", "--mount-proc"}
	if os.Getuid() != 0 {
		unshare = append(unshare, "--user", "--map-root-user")
	}
	if text, err := exec.Command(unshare[0], append(slices.Clone(unshare[1:]), "true")...).CombinedOutput(); err != nil {
		cannotRun(t, "no PID namespace: %v: %s", err, text)
	}
	o.Prefix = append(unshare, o.Prefix...)
	return start(t, o)
}

// Where the list of processes is missing, or has the numbers of another
// namespace, the server's group still goes.
func TestClientGoneWithoutProc(t *testing.T) {
	for name, prefix := range map[string][]string{
		"none":                 {"--mount", "sh", "-c", `mount -t tmpfs none /proc && exec "$0" "$@"`},
		"of another namespace": {"--pid", "--fork", "--kill-child"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			unshare := []string{needs(t, "unshare")}
			if os.Getuid() != 0 {
				unshare = append(unshare, "--user", "--map-root-user")
			}
			unshare = append(unshare, prefix...)
			if text, err := exec.Command(unshare[0], append(slices.Clone(unshare[1:]), "true")...).CombinedOutput(); err != nil {
				cannotRun(t, "no namespace: %v: %s", err, text)
			}
			r, w, err := os.Pipe()
			if err != nil {
				t.Fatal(err)
			}
			defer r.Close()
			s := start(t, Options{
				Prefix: unshare, Files: []*os.File{w}, Flags: []string{"--wire=stdio", "--framing=raw", "--stop-timeout=200ms"},
				Command: []string{"sh", "-c", `trap '' TERM; sleep 120 & echo ready; wait; sleep 120`},
			})
			w.Close()
			s.ExpectLine("ready")
			s.CloseStdout()
			s.CloseStdin()
			s.WaitExit()
			if err := r.SetReadDeadline(limit(t)); err != nil {
				t.Fatal(err)
			}
			if _, err := r.Read(make([]byte, 1)); err != io.EOF {
				t.Errorf("the group does not end: %v", err)
			}
		})
	}
}

// What a launcher has left behind goes with the client, whatever its group.
func TestClientGoneAfterLauncher(t *testing.T) {
	needs(t, "setsid")
	for name, leave := range map[string]func(s *session){
		"both ends":  func(s *session) { s.CloseStdin(); s.CloseStdout() },
		"its reader": func(s *session) { s.CloseStdout() },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r, w, err := os.Pipe()
			if err != nil {
				t.Fatal(err)
			}
			defer r.Close()
			s := start(t, Options{
				Files: []*os.File{w}, Flags: []string{"--wire=stdio", "--framing=raw", "--stop-timeout=200ms"},
				Command: []string{"sh", "-c", `
					exec 5<&0; trap '' TERM
					sleep 120 <&5 &
					setsid sleep 120 <&5 &
					echo $$`},
			})
			w.Close()
			server := number(s.ReadLine())
			eventually(t, "the launcher to end", func() bool { _, ok := statOf(server); return !ok })
			time.Sleep(200 * time.Millisecond) // nothing tells that we know of it
			leave(s)
			s.WaitExit()
			if err := r.SetReadDeadline(limit(t)); err != nil {
				t.Fatal(err)
			}
			if _, err := r.Read(make([]byte, 1)); err != io.EOF {
				t.Errorf("what it has left does not end: %v", err)
			}
		})
	}
}

// Output that the client has not read ends with it, whoever else could read it.
func TestClientGoneWhileDelivering(t *testing.T) {
	t.Parallel()
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close() // nobody reads what the holder passes on
	useRole(holder)
	s := start(t, wrapped(Options{
		Stdout:  w,
		Flags:   []string{"--wire=stdio", "--framing=raw"},
		Command: []string{"sh", "-c", `head -c 400000 /dev/zero; echo ended >&2`},
	}, parent))
	w.Close()
	s.WaitStderr("ended\n")
	ours := slices.DeleteFunc(childrenOf(s.Pid()), func(pid int) bool {
		return filepath.Base(strings.Fields(cmdline(pid) + " -")[0]) != filepath.Base(wireguardrun)
	})
	if len(ours) != 1 {
		t.Fatalf("there are %v, want one", ours)
	}
	s.Signal(unix.SIGKILL)
	eventually(t, "wireguardrun to end", func() bool {
		stat, ok := statOf(ours[0])
		return !ok || stat.state == 'Z'
	})
}

// A second reason to end a server is no second signal: it reaches those alone
// whom the first did not concern.
func TestAskedOnce(t *testing.T) {
	t.Parallel()
	f := startFamily(t, Options{
		Flags:    []string{"--eof-timeout=10ms", "--stop-timeout=3s"},
		RoleArgs: []string{"eof:stay", "term:stay"},
	}, "setsid")
	f.ExpectLine("ready")
	f.CloseStdin()
	f.WaitStderr("got TERM\n")
	f.lives(1)
	f.CloseStdout()
	f.isGone(1)
	f.WaitExit() // killed
	if n := strings.Count(f.Stderr(), "got TERM\n"); n != 1 {
		t.Errorf("the server got TERM %d times", n)
	}
}

// What is stopped and left behind can't see that it is to end.
func TestStoppedRestIsAsked(t *testing.T) {
	t.Parallel()
	s := start(t, Options{Command: []string{"sh", "-c", `
		sh -c 'trap "echo polite >&2; exit" TERM; kill -STOP $$; while :; do sleep 0.02; done' 3<&- 4>&- &
		until grep -q "^State:.T" /proc/$!/status; do sleep 0.02; done
		exit 3`}})
	s.ExpectExit(Status{Code: 3})
	s.WaitStderr("polite\n")
}

// As process 1 we reap what nobody else does, pass signals on, and end with
// the server's status.
func TestProcessOne(t *testing.T) {
	for name, test := range map[string]struct {
		end  func(s *session, one int)
		want int
	}{
		"exit":         {func(s *session, _ int) { s.Send("exit 6\n") }, 6},
		"end of input": {func(s *session, _ int) { s.CloseStdin() }, 0},
		"signal": {func(s *session, one int) {
			if err := syscall.Kill(one, unix.SIGTERM); err != nil {
				s.t.Fatal(err)
			}
		}, 128 + int(unix.SIGTERM)},
		"client gone": {func(s *session, _ int) { s.CloseStdout(); s.CloseStdin() }, 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := inNamespace(t, Options{Role: living})
			s.ExpectLine("ready")
			if got := ask(s, "parent"); got != "1" {
				t.Fatalf("the server's parent is %s", got)
			}
			one := childrenOf(s.Pid())
			if len(one) != 1 {
				t.Fatalf("unshare has the children %v", one)
			}
			for range 3 {
				if got := ask(s, "stray"); number(got) <= 1 {
					t.Errorf("the stray is %s", got)
				}
			}
			eventually(t, "strays to be waited for", func() bool {
				return !slices.ContainsFunc(childrenOf(one[0]), func(pid int) bool {
					s, ok := statOf(pid)
					return ok && s.state == 'Z' || strings.HasPrefix(cmdline(pid), "sh ")
				})
			})
			test.end(s, one[0])
			if got := s.WaitExit(); got != (Status{Code: test.want}) {
				t.Errorf("%v, want %d", got, test.want)
			}
		})
	}
}

// signalLog tells on descriptor 2 of every signal that can be caught, by its
// number, and starts a child that does so too.
var signalLog = role("signal-log", func() int {
	in, out := handedWire()
	who := "child"
	logSignals := func() {
		caught := make(chan os.Signal, 256)
		for n := 1; n <= 64; n++ {
			if sig := syscall.Signal(n); !slices.Contains(notLogged, sig) {
				signal.Notify(caught, sig)
			}
		}
		go func() {
			for sig := range caught {
				fmt.Fprintf(os.Stderr, "%s: %d\n", who, int(sig.(syscall.Signal)))
			}
		}()
	}
	if len(os.Args) > 1 {
		logSignals()
		fmt.Println("ready")
		io.Copy(io.Discard, os.Stdin)
		return 0
	}
	who = "server"
	logSignals()
	argv, err := os.Executable()
	if err != nil {
		return 1
	}
	cmd := exec.Command(argv, "child")
	cmd.Env = append(os.Environ(), roleEnv+"=signal-log")
	cmd.Stderr = os.Stderr
	if heldPipe, err := cmd.StdinPipe(); err == nil {
		heldOpen = append(heldOpen, heldPipe)
	}
	ready, err := cmd.StdoutPipe()
	if err != nil {
		return 1
	}
	if err := cmd.Start(); err != nil {
		return 1
	}
	io.ReadFull(ready, make([]byte, len("ready\n")))
	fmt.Fprintln(out, "ready")
	io.Copy(out, in)
	return 0
})

// notLogged are those that no server is sent by way of us, but for CHLD, TTIN
// and TTOU, and CONT, which a server also gets from elsewhere.
var notLogged = []syscall.Signal{
	unix.SIGKILL, unix.SIGSTOP, unix.SIGSEGV, unix.SIGBUS, unix.SIGFPE, unix.SIGILL,
	unix.SIGTRAP, unix.SIGSYS, unix.SIGCHLD, unix.SIGTTIN, unix.SIGTTOU, unix.SIGURG,
	unix.SIGPIPE, unix.SIGCONT, 32, 33, 34,
}

// listening waits until all signals are passed on, which begins a moment after
// the start, in the order of their numbers: the last one is sent until it
// arrives. Nothing else shows it.
func listening(s *session, arrived func() bool) {
	s.t.Helper()
	eventually(s.t, "the last signal", func() bool {
		if arrived() {
			return true
		}
		s.Signal(syscall.Signal(64))
		return false
	})
}

// Every signal that means something to a server arrives, once, at all of its
// group.
func TestEverySignalForwarded(t *testing.T) {
	t.Parallel()
	s := start(t, Options{Role: signalLog})
	s.ExpectLine("ready")
	got := func(line string) int { return strings.Count(s.Stderr(), line) }
	listening(s, func() bool { return got("server: 64\n") > 0 && got("child: 64\n") > 0 })
	var sent []int
	for n := 1; n < 64; n++ {
		sig := syscall.Signal(n)
		if slices.Contains(notLogged, sig) || sig == unix.SIGTSTP || sig == unix.SIGPROF {
			// TSTP stops us too, if the server stops. Go's runtime keeps
			// PROF for itself, in us and in the server of this test.
			continue
		}
		sent = append(sent, n)
		s.Signal(sig)
		s.WaitStderr(fmt.Sprintf("server: %d\n", n))
		s.WaitStderr(fmt.Sprintf("child: %d\n", n))
	}
	for _, sig := range []syscall.Signal{unix.SIGUSR1, unix.SIGUSR2, unix.SIGQUIT, unix.SIGWINCH, unix.SIGALRM, 40, 50} {
		if !slices.Contains(sent, int(sig)) {
			t.Errorf("%v was not tried", sig)
		}
	}
	s.Send("x\n")
	s.ExpectLine("x")
	finish(s)
	for _, n := range sent {
		for _, who := range []string{"server", "child"} {
			if times := got(fmt.Sprintf("%s: %d\n", who, n)); times != 1 {
				t.Errorf("%s got signal %d %d times", who, n, times)
			}
		}
	}
}

func isStopped(pid int) bool {
	s, ok := statOf(pid)
	return ok && s.state == 'T'
}

// A stop is for both, and so is going on.
func TestStopAndContinue(t *testing.T) {
	t.Parallel()
	f := startFamily(t, Options{}, "group")
	f.ExpectLine("ready")
	listeningFor(f.session)
	server := 0
	for _, pid := range childrenOf(f.Pid()) {
		if filepath.Base(strings.Fields(cmdline(pid))[0]) == filepath.Base(os.Args[0]) {
			server = pid
		}
	}
	kids := childrenOf(server)
	if server == 0 || len(kids) != 1 {
		t.Fatalf("the server is %d, its children are %v", server, kids)
	}
	for range 3 {
		f.Signal(unix.SIGTSTP)
		for _, pid := range []int{f.Pid(), server, kids[0]} {
			eventually(t, fmt.Sprintf("%d to stop", pid), func() bool { return isStopped(pid) })
		}
		f.Signal(unix.SIGCONT)
		for _, pid := range []int{f.Pid(), server, kids[0]} {
			eventually(t, fmt.Sprintf("%d to go on", pid), func() bool { return !isStopped(pid) })
		}
		f.Send("echo on\n")
		f.ExpectLine("on")
	}
	// A stop of the server alone is not ours.
	if err := syscall.Kill(server, unix.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the server to stop", func() bool { return isStopped(server) })
	if err := syscall.Kill(server, unix.SIGCONT); err != nil {
		t.Fatal(err)
	}
	f.Send("echo on\n")
	f.ExpectLine("on")
	if isStopped(f.Pid()) {
		t.Error("we stopped with the server")
	}
	finish(f.session)
	wantStderr(f.session, "")
}

// listeningFor is listening where the server does not tell: the last signal's
// bit among those that are caught can't be seen, but WINCH's handler can.
func listeningFor(s *session) {
	s.t.Helper()
	eventually(s.t, "signals to be caught", func() bool {
		status, _ := os.ReadFile(fmt.Sprintf("/proc/%d/status", s.Pid()))
		_, rest, _ := strings.Cut(string(status), "SigCgt:")
		var caught uint64
		fmt.Sscanf(rest, "%x", &caught)
		return caught&(1<<(unix.SIGTSTP-1)) != 0
	})
}
