//go:build unix

package e2e

import (
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

const (
	saysGone   = "the client is gone"
	saysParent = "the client's process has ended"
	saysReader = "nobody reads the wire"
)

// wantNoGone checks that we have not taken the client for gone.
func wantNoGone(s *session) {
	s.t.Helper()
	if strings.Contains(s.Stderr(), saysGone) {
		s.t.Errorf("standard error has %s", clip(s.Stderr()))
	}
}

// A server that ends at the end of its input has all the time that it needs for
// that, and its status is ours. What it has started goes too.
func TestClientGonePolite(t *testing.T) {
	for _, sockets := range []bool{false, true} {
		t.Run(fmt.Sprintf("sockets=%v", sockets), func(t *testing.T) {
			t.Parallel()
			f := startFamily(t, Options{
				Sockets: sockets, Flags: []string{"--stop-timeout=200ms"}, RoleArgs: []string{"eof:7"},
			}, "group", "group-stubborn", "setsid-stubborn", "double-stubborn", "setsid")
			f.ExpectLine("ready")
			f.CloseStdout()
			f.CloseStdin()
			if got := f.WaitExit(); got != (Status{Code: 7}) {
				t.Errorf("%v, want 7", got)
			}
			f.allGone()
		})
	}
}

// A server that does not end is asked to, and then made to. The inbound bytes
// that were sent before are delivered first.
func TestClientGoneStubborn(t *testing.T) {
	for _, sockets := range []bool{false, true} {
		t.Run(fmt.Sprintf("sockets=%v", sockets), func(t *testing.T) {
			t.Parallel()
			f := startFamily(t, Options{
				Sockets: sockets, Flags: []string{"--stop-timeout=200ms"}, RoleArgs: []string{"eof:stay", "term:stay"},
			}, everyKin...)
			f.ExpectLine("ready")
			f.Send("tell last words\n")
			f.CloseStdout()
			f.CloseStdin()
			if got, want := f.WaitExit(), (Status{Signal: unix.SIGKILL}); got != want {
				t.Errorf("%v, want %v", got, want)
			}
			f.allGone()
			text := f.Stderr()
			for _, step := range []string{"last words\n", "living: end of the input\n", "living: got TERM\n"} {
				_, rest, found := strings.Cut(text, step)
				if !found {
					t.Fatalf("standard error has %s, want %q there, in order", clip(f.Stderr()), step)
				}
				text = rest
			}
			if strings.Count(f.Stderr(), "got TERM") != 1 {
				t.Errorf("TERM came more than once: %s", clip(f.Stderr()))
			}
		})
	}
}

// A stopped server can't end; it is asked so that it can.
func TestClientGoneStopped(t *testing.T) {
	t.Parallel()
	f := startFamily(t, Options{RoleArgs: []string{"eof:7"}})
	f.ExpectLine("ready")
	f.Send(fmt.Sprintf("raise %d\n", int(unix.SIGSTOP)))
	f.CloseStdout()
	f.CloseStdin()
	if got := f.WaitExit(); got != (Status{Code: 7}) && got != (Status{Signal: unix.SIGTERM}) {
		t.Errorf("%v, want its own end or TERM", got)
	}
	f.allGone()
}

// A server that saves its state after TERM has the whole grace for it.
func TestClientGoneSavesState(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "saved")
	f := startFamily(t, Options{RoleArgs: []string{"eof:stay", "term:" + path}}, "setsid-stubborn")
	f.ExpectLine("ready")
	f.CloseStdout()
	f.CloseStdin()
	f.WaitStderr("living: got TERM\n")
	time.Sleep(3 * time.Second) // of the 5 s before it is killed
	writeFile(t, path, "")
	if got := f.WaitExit(); got != (Status{}) {
		t.Errorf("%v, want success", got)
	}
	f.allGone()
	if !strings.Contains(f.Stderr(), "living: saved\n") {
		t.Errorf("standard error has %s", clip(f.Stderr()))
	}
}

// Nobody reads, and nobody writes either, although somebody could.
func TestHangupAlone(t *testing.T) {
	for _, sockets := range []bool{false, true} {
		t.Run(fmt.Sprintf("sockets=%v", sockets), func(t *testing.T) {
			t.Parallel()
			f := startFamily(t, Options{Sockets: sockets, Flags: []string{"--stop-timeout=200ms"}}, everyKin...)
			f.ExpectLine("ready")
			f.CloseStdout()
			f.WaitStderr(saysReader)
			if got, want := f.WaitExit(), (Status{Signal: unix.SIGTERM}); got != want {
				t.Errorf("%v, want %v", got, want)
			}
			f.allGone()
		})
	}
}

// A client that still writes may read elsewhere.
func TestHangupWithInput(t *testing.T) {
	for _, sockets := range []bool{false, true} {
		t.Run(fmt.Sprintf("sockets=%v", sockets), func(t *testing.T) {
			t.Parallel()
			f := startFamily(t, Options{Sockets: sockets})
			f.ExpectLine("ready")
			f.CloseStdout()
			for n, end := 0, time.Now().Add(pastTheRules+time.Second); time.Now().Before(end); n++ {
				f.Send(fmt.Sprintf("tell %d\n", n))
				f.WaitStderr(fmt.Sprintf("%d\n", n)) // so nothing is unread
				time.Sleep(100 * time.Millisecond)
			}
			wantNoGone(f.session)
			f.lives(0)
			f.CloseStdin()
			if got := f.WaitExit(); got != (Status{}) {
				t.Errorf("%v, want success", got)
			}
		})
	}
}

// A reader of a named FIFO may come back.
func TestHangupOfNamedFIFO(t *testing.T) {
	for _, comesBack := range []bool{true, false} {
		t.Run(fmt.Sprintf("comes back=%v", comesBack), func(t *testing.T) {
			t.Parallel()
			path := filepath.Join(t.TempDir(), "fifo")
			if err := unix.Mkfifo(path, 0o600); err != nil {
				t.Fatal(err)
			}
			open := func(flags int) *os.File {
				t.Helper()
				f, err := os.OpenFile(path, flags, 0)
				if err != nil {
					t.Fatal(err)
				}
				return f
			}
			reader := open(os.O_RDONLY | unix.O_NONBLOCK)
			writer := open(os.O_WRONLY)
			s := start(t, Options{Stdout: writer, Role: living, RoleArgs: []string{"eof:stay"}, Flags: []string{"--stop-timeout=200ms"}})
			writer.Close()
			s.out = s.read(reader, "<")
			s.ExpectLine("ready")
			s.CloseStdout()
			<-s.out.done
			time.Sleep(pastTheRules)
			wantNoGone(s)
			if comesBack {
				s.out = s.read(open(os.O_RDONLY|unix.O_NONBLOCK), "<")
				s.Send("echo back\n")
				s.ExpectLine("back")
				s.Send("exit 3\n")
				s.ExpectExit(Status{Code: 3})
				wantNoGone(s)
				return
			}
			// With the end of the input it counts, there too.
			s.CloseStdin()
			s.WaitStderr(saysReader)
			if got, want := s.WaitExit(), (Status{Signal: unix.SIGTERM}); got != want {
				t.Errorf("%v, want %v", got, want)
			}
		})
	}
}

// parent is a client: it makes the pipes of the command, which it starts. Its
// helper, which has the client's ends too, carries what the test says and
// hears, and does not end with it.
var parent = role("parent", func() int {
	args, argv := unwrap()
	var child, ours [2]*os.File
	for n := range 2 {
		var err error
		if len(args) > 0 && args[0] == "sockets" {
			child[n], ours[n], err = socketPair()
		} else if n == 0 {
			child[n], ours[n], err = os.Pipe()
		} else {
			ours[n], child[n], err = os.Pipe()
		}
		if err != nil {
			panic(err)
		}
	}
	cmd := exec.Command(argv[0], argv[1:]...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = child[0], child[1], os.Stderr
	cmd.ExtraFiles = []*os.File{os.NewFile(3, "mark")}
	if err := cmd.Start(); err != nil {
		panic(err)
	}
	self, env := roleCommand(holder)
	help := exec.Command(self[0], self[1:]...)
	help.Env = append(os.Environ(), env...)
	help.Stdin, help.Stdout, help.Stderr = os.Stdin, os.Stdout, os.Stderr
	help.ExtraFiles = ours[:]
	unix.CloseOnExec(3)
	if err := help.Start(); err != nil {
		panic(err)
	}
	child[0].Close()
	child[1].Close()
	cmd.Wait()
	return 0
})

// holder copies its input to descriptor 3, and descriptor 4 to its output.
const holder = "holder"

var _ = role(holder, func() int {
	in, out := os.NewFile(3, "in"), os.NewFile(4, "out")
	go func() {
		io.Copy(in, os.Stdin)
		in.Close()
	}()
	io.Copy(os.Stdout, out)
	return 0
})

func startUnderParent(t *testing.T, o Options, args ...string) *family {
	t.Helper()
	useRole(holder)
	o.Role = living
	o = wrapped(o, parent, args...)
	f := startFamily(t, o)
	f.ExpectLine("ready")
	return f
}

// isWatched waits until wireguardrun has found out that its parent is the client.
// The server, which is to stay at TERM, may be ready earlier; a signal is passed
// on only later.
func (f *family) isWatched() {
	f.t.Helper()
	if err := unix.Kill(number(ask(f.session, "parent")), unix.SIGTERM); err != nil {
		f.t.Fatal(err)
	}
	f.WaitStderr("got TERM\n")
}

// The client's death is enough, whoever else has the ends of its pipes.
func TestParentGone(t *testing.T) {
	for _, kind := range []string{"pipes", "sockets"} {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			f := startUnderParent(t, Options{Flags: []string{"--stop-timeout=200ms"}, RoleArgs: []string{"term:stay"}}, kind)
			f.isWatched()
			f.Signal(unix.SIGKILL)
			f.WaitStderr(saysParent)
			f.isGone(0)
		})
	}
}

// HUP ignored or not: a client that holds the wire is the client.
func TestParentGoneUnderNohup(t *testing.T) {
	t.Parallel()
	f := startUnderParent(t, prepared(Options{Flags: []string{"--stop-timeout=200ms"}, Role: living, RoleArgs: []string{"term:stay"}}, "ignore:1"))
	f.isWatched()
	f.Signal(unix.SIGKILL)
	f.WaitStderr(saysParent)
	f.isGone(0)
}

// One may know better.
func TestParentNotWatched(t *testing.T) {
	t.Parallel()
	f := startUnderParent(t, Options{Flags: []string{"--watch-parent=no"}})
	f.Signal(unix.SIGKILL)
	<-f.exited
	time.Sleep(pastTheRules)
	if got := ask(f.session, "echo on"); got != "on" {
		t.Errorf("the server answers %q", got)
	}
	f.CloseStdin()
	f.isGone(0)
	f.ExpectEnd()
	wantNoGone(f.session)
}

// passer passes its own streams on to the command, and lives until it is
// killed, or with the argument "end" until the command runs.
var passer = role("passer", func() int {
	args, argv := unwrap()
	cmd := exec.Command(argv[0], argv[1:]...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
	cmd.ExtraFiles = []*os.File{os.NewFile(3, "mark")}
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := cmd.Start(); err != nil {
		panic(err)
	}
	for n := range 4 {
		unix.Close(n)
	}
	if len(args) == 0 || args[0] != "end" {
		time.Sleep(2 * patience)
	}
	return 0
})

// Who has only passed the wire on is not the client, and may end any time.
func TestParentWasLauncher(t *testing.T) {
	t.Parallel()
	cases := map[string]func() func(){}
	for _, sockets := range []bool{false, true} {
		for name, test := range map[string]struct {
			args, steps []string
		}{
			"it ends at once":        {args: []string{"end"}},
			"it is killed":           {},
			"HUP is ignored":         {steps: []string{"ignore:1"}},
			"HUP ignored, it's gone": {args: []string{"end"}, steps: []string{"ignore:1"}},
		} {
			cases[fmt.Sprintf("%s, sockets=%v", name, sockets)] = func() func() {
				o := Options{Role: living, Sockets: sockets}
				if test.steps != nil {
					o = prepared(o, test.steps...)
				}
				f := startFamily(t, wrapped(o, passer, test.args...))
				f.ExpectLine("ready")
				if test.args == nil {
					f.Signal(unix.SIGKILL)
				}
				<-f.exited
				return func() {
					if got := ask(f.session, "echo on"); got != "on" {
						t.Errorf("the server answers %q", got)
					}
					f.CloseStdin()
					f.isGone(0)
					f.ExpectEnd()
					wantNoGone(f.session)
				}
			}
		}
	}
	meanwhile(t, cases)
}

// A log-out under nohup: the terminal's session gets HUP, its leader ends.
func TestLogoutUnderNohup(t *testing.T) {
	t.Parallel()
	f := startFamily(t, wrapped(prepared(Options{Role: living}, "ignore:1"), passer))
	f.ExpectLine("ready")
	us := number(ask(f.session, "parent"))
	for _, pid := range []int{f.Pid(), -us} {
		if err := syscall.Kill(pid, unix.SIGHUP); err != nil {
			t.Fatal(err)
		}
	}
	<-f.exited
	time.Sleep(pastTheRules)
	if got := ask(f.session, "echo on"); got != "on" {
		t.Errorf("the server answers %q", got)
	}
	f.CloseStdin()
	f.isGone(0)
	wantNoGone(f.session)
}
