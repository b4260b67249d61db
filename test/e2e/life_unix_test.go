//go:build unix

package e2e

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// pastTheRules is longer than any time after which a rule of ours acts by
// itself. Only a test that nothing happens waits for it, in parallel with
// others: there is no event that tells of nothing.
const pastTheRules = 3500 * time.Millisecond

// meanwhile waits once for all cases of a test: each begins with what it starts,
// and returns what is to be checked when the rules have had their time. A case
// uses no subtest, since the sessions are those of t.
func meanwhile(t *testing.T, cases map[string]func() (check func())) {
	t.Helper()
	checks := map[string]func(){}
	for name, begin := range cases {
		checks[name] = begin()
	}
	time.Sleep(pastTheRules)
	for name, check := range checks {
		failed := t.Failed()
		check()
		if t.Failed() && !failed {
			t.Errorf("that was the case %q", name)
		}
	}
}

// living is a server whose end is up to the test. Its arguments:
//
//	kin:KIND...  start a process, see kin; all before the server says "ready".
//	             Descriptor 3 is the server's mark, 4 and on are its kin's
//	marks:N      how many such descriptors there are
//	eof:stay     the end of the input is told on descriptor 2, and not obeyed
//	eof:N        the end of the input ends it with status N
//	term:stay    TERM is told on descriptor 2, and not obeyed
//	term:PATH    TERM is told, and ends it with status 0 once PATH is there
//	off:N        ignore signal N
//
// Meanwhile it obeys the commands of the server role.
var living = role("living", func() int {
	marks, eof := 0, "0"
	var kinds []string
	for _, arg := range os.Args[1:] {
		name, value, _ := strings.Cut(arg, ":")
		switch name {
		case "kin":
			kinds = append(kinds, value)
		case "marks":
			marks = number(value)
		case "eof":
			eof = value
		case "term":
			onTerm(value)
		case "off":
			signal.Ignore(syscall.Signal(number(value)))
		}
	}
	in, out := handedWire()
	for i, kind := range kinds {
		if err := startKin(kind, 4+i, marks); err != nil {
			fmt.Fprintf(os.Stderr, "living: %v\n", err)
			return 1
		}
	}
	for i := 1; i < marks; i++ {
		unix.Close(3 + i)
	}
	fmt.Fprintln(out, "ready")
	lines := bufio.NewScanner(in)
	for lines.Scan() {
		name, arg, _ := strings.Cut(lines.Text(), " ")
		switch name {
		case "exit":
			return number(arg)
		case "echo":
			fmt.Fprintln(out, arg)
		case "tell":
			fmt.Fprintln(os.Stderr, arg)
		case "parent":
			fmt.Fprintln(out, os.Getppid())
		case "run":
			fmt.Fprintln(out, os.Getenv("WIREGUARDRUN_RUN"))
		case "raise":
			unix.Kill(unix.Getpid(), syscall.Signal(number(arg)))
		case "stray":
			if err := strayChild(out); err != nil {
				fmt.Fprintln(out, err)
			}
		}
	}
	if eof != "stay" {
		return number(eof)
	}
	fmt.Fprintln(os.Stderr, "living: end of the input")
	time.Sleep(2 * patience)
	return 1
})

func onTerm(what string) {
	caught := make(chan os.Signal, 16)
	signal.Notify(caught, unix.SIGTERM)
	go func() {
		for range caught {
			fmt.Fprintln(os.Stderr, "living: got TERM")
			if what != "stay" {
				awaitFile(what)
				fmt.Fprintln(os.Stderr, "living: saved")
				os.Exit(0)
			}
		}
	}()
}

// awaitFile is for roles: the test makes the file.
func awaitFile(path string) {
	for end := time.Now().Add(2 * patience); time.Now().Before(end); time.Sleep(5 * time.Millisecond) {
		if _, err := os.Stat(path); err == nil {
			return
		}
	}
}

// kin is a process that the server has started: KIND is where it is, and
// "-stubborn" when it ignores the signals that ask a process to end.
//
//	group   in the server's group
//	setsid  in a session of its own
//	double  the same, and its parent has ended
//	bare    the same, and without any variable
const kin = "kin"

var _ = role(kin, func() int {
	kind, own, marks := os.Args[1], number(os.Args[2]), number(os.Args[3])
	if strings.HasPrefix(kind, "parent-") {
		if err := runKin(strings.TrimPrefix(kind, "parent-"), own, marks, os.Stdout); err != nil {
			return 1
		}
		return 0
	}
	for n := 3; n < 3+marks; n++ {
		if n != own {
			unix.Close(n)
		}
	}
	if strings.HasSuffix(kind, "-stubborn") {
		signal.Ignore(unix.SIGTERM, unix.SIGHUP, unix.SIGINT)
	}
	fmt.Println("ready")
	unix.Close(1)
	time.Sleep(2 * patience)
	return 0
})

func runKin(kind string, own, marks int, out *os.File) error {
	argv, env := roleCommand(kin, kind, fmt.Sprint(own), fmt.Sprint(marks))
	cmd := exec.Command(argv[0], argv[1:]...)
	cmd.Env = append(os.Environ(), env...)
	if strings.HasPrefix(kind, "bare") {
		cmd.Env = env
	}
	cmd.Stdout = out
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: !strings.HasPrefix(kind, "group") && !strings.HasPrefix(kind, "parent-")}
	return cmd.Start()
}

func startKin(kind string, own, marks int) error {
	r, w, err := os.Pipe()
	if err != nil {
		return err
	}
	defer r.Close()
	if strings.HasPrefix(kind, "double") || strings.HasPrefix(kind, "bare") {
		kind = "parent-" + kind
	}
	err = runKin(kind, own, marks, w)
	w.Close()
	if err != nil {
		return err
	}
	// All of it: a parent in between has ended too, then.
	text, err := io.ReadAll(r)
	if err == nil && string(text) != "ready\n" {
		err = fmt.Errorf("kin %s said %q", kind, text)
	}
	return err
}

// strayChild starts a process whose parent ends at once, as soon as which it
// ends too: whoever adopts it has to wait for it. It answers with its id.
func strayChild(out io.Writer) error {
	cmd := exec.Command("sh", "-c", `(exec 4<&0; sh -c 'echo $$; read x' <&4 & )`)
	hold, err := cmd.StdinPipe()
	if err != nil {
		return err
	}
	text, err := cmd.StdoutPipe()
	if err != nil {
		return err
	}
	if err := cmd.Start(); err != nil {
		return err
	}
	pid, err := bufio.NewReader(text).ReadString('\n')
	if err != nil {
		return err
	}
	hold.Close()
	fmt.Fprint(out, pid)
	return nil
}

// family is a living server and its kin. Each of them, and nobody else for
// longer, has the write end of a pipe of its own, whose end is its end: also
// wireguardrun and its keeper must not hold it.
type family struct {
	*session
	marks []*os.File // the server's, then those of its kin
}

// startFamily starts a living server with kin of the given kinds.
func startFamily(t *testing.T, o Options, kinds ...string) *family {
	t.Helper()
	useRole(kin)
	f := &family{}
	o.Role = living
	for _, kind := range kinds {
		o.RoleArgs = append(o.RoleArgs, "kin:"+kind)
	}
	n := len(kinds) + 1
	o.RoleArgs = append(o.RoleArgs, fmt.Sprint("marks:", n))
	var ends []*os.File
	for range n {
		r, w, err := os.Pipe()
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { r.Close() })
		f.marks, ends = append(f.marks, r), append(ends, w)
	}
	o.Files = ends
	f.session = start(t, o)
	for _, w := range ends {
		w.Close()
	}
	return f
}

// isGone waits for the end of one: 0 is the server, then the kin.
func (f *family) isGone(n int) {
	f.t.Helper()
	if err := f.marks[n].SetReadDeadline(limit(f.t)); err != nil {
		f.t.Fatal(err)
	}
	if _, err := f.marks[n].Read(make([]byte, 1)); err != io.EOF {
		f.t.Fatalf("process %d of the family does not end (%v); the session has %v", n, err, f.Processes())
	}
}

func (f *family) allGone() {
	f.t.Helper()
	for n := range f.marks {
		f.isGone(n)
	}
}

// lives checks that one has not ended.
func (f *family) lives(n int) {
	f.t.Helper()
	if err := f.marks[n].SetReadDeadline(time.Now().Add(10 * time.Millisecond)); err != nil {
		f.t.Fatal(err)
	}
	if _, err := f.marks[n].Read(make([]byte, 1)); !errors.Is(err, os.ErrDeadlineExceeded) {
		f.t.Errorf("process %d of the family has ended (%v)", n, err)
	}
}

var everyKin = []string{"group-stubborn", "setsid-stubborn", "double-stubborn"}

// Whatever kills us kills the server and all that it has started.
func TestKilledLeavesNothing(t *testing.T) {
	for name, kill := range map[string]func(*family){
		"alone": func(f *family) { f.Signal(unix.SIGKILL) },
		"with our group": func(f *family) {
			if err := syscall.Kill(-f.Pid(), unix.SIGKILL); err != nil {
				f.t.Fatal(err)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := startFamily(t, Options{RoleArgs: []string{"term:stay", "eof:stay"}}, everyKin...)
			f.ExpectLine("ready")
			awaitKeeper(f.session)
			kill(f)
			if got, want := f.WaitExit(), (Status{Signal: unix.SIGKILL}); got != want {
				t.Fatalf("%v, want %v", got, want)
			}
			f.allGone()
		})
	}
}

// The whole of the inner run is part of the outer one.
func TestNestedKilled(t *testing.T) {
	t.Parallel()
	f := startFamily(t, Options{Prefix: []string{wireguardrun, "--wire=fds", "--"}, RoleArgs: []string{"term:stay", "eof:stay"}}, everyKin...)
	f.ExpectLine("ready")
	outer, inner, nested := strings.Cut(ask(f.session, "run"), ":")
	if !nested || outer == "" || inner == "" || outer == inner || strings.Contains(inner, ":") {
		t.Errorf("the runs are %q and %q, want two", outer, inner)
	}
	awaitKeeper(f.session)
	f.Signal(unix.SIGKILL)
	f.WaitExit()
	f.allGone()
}

// A run's name is its own.
func TestRunIsNamed(t *testing.T) {
	seen := map[string]bool{}
	for range 2 {
		f := startFamily(t, Options{})
		f.ExpectLine("ready")
		run := ask(f.session, "run")
		if run == "" || strings.Contains(run, ":") || seen[run] {
			t.Errorf("the run is %q, after %v", run, seen)
		}
		seen[run] = true
		finish(f.session)
	}
}

// At a normal end daemons are left alone. The rest of the group is asked to
// end, and made to when it does not; nobody waits for that.
func TestNormalEndOfATree(t *testing.T) {
	for _, end := range []string{"exit 3", "end of the input"} {
		t.Run(end, func(t *testing.T) {
			t.Parallel()
			f := startFamily(t, Options{RoleArgs: []string{"eof:3"}}, "group", "group-stubborn", "setsid", "double")
			f.ExpectLine("ready")
			if end == "exit 3" {
				f.Send("exit 3\n")
			} else {
				f.CloseStdin()
			}
			if got := f.WaitExit(); got != (Status{Code: 3}) {
				t.Fatalf("%v, want 3", got)
			}
			f.lives(2) // for some seconds more
			f.isGone(0)
			f.isGone(1)
			f.isGone(2)
			f.lives(3)
			f.lives(4)
		})
	}
}

// The status is there although the client keeps its side open.
func TestClientKeepsItsSideOpen(t *testing.T) {
	for _, sockets := range []bool{false, true} {
		s := start(t, Options{Role: living, RoleArgs: []string{"kin:setsid", "marks:0"}, Sockets: sockets})
		s.ExpectLine("ready")
		s.Send("exit 4\n")
		if got := s.WaitExit(); got != (Status{Code: 4}) {
			t.Errorf("%v, want 4", got)
		}
		s.ExpectEnd() // and nothing of ours keeps the client's
	}
}

// What a launcher leaves behind in its group, with the wire, is the server.
func TestServerInTheBackgroundOfItsLauncher(t *testing.T) {
	for name, end := range map[string]func(f *session){
		"end of the input":  func(s *session) { s.CloseStdin() },
		"the server's end":  func(s *session) { s.Send("exit 9\n") },
		"the server's kill": func(s *session) { s.Send("raise 9\n") },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			argv, env := roleCommand(living)
			s := start(t, Options{Command: append([]string{"sh", "-c", `"$0" "$@" & exit 0`}, argv...), Env: env})
			s.ExpectLine("ready")
			launcher := ask(s, "parent")
			for end := limit(t); launcher != fmt.Sprint(s.Pid()) && launcher != "1"; launcher = ask(s, "parent") {
				if time.Now().After(end) {
					t.Fatalf("the launcher %s does not end", launcher)
				}
			}
			// Longer than it takes to find a group without the wire.
			for range 20 {
				time.Sleep(20 * time.Millisecond)
				s.Send("echo on\n")
				s.ExpectLine("on")
			}
			end(s)
			s.ExpectEnd()
			s.ExpectExit(Status{})
		})
	}
}

// Without a keeper only what the system ends with us is ended.
func TestNoKeeper(t *testing.T) {
	f := startFamily(t, Options{Flags: []string{"--keeper=no"}, RoleArgs: []string{"eof:stay"}}, "setsid-stubborn")
	f.ExpectLine("ready")
	for range 3 {
		f.Send("echo x\n")
		f.ExpectLine("x")
		if got := keepersOf(f.session); len(got) > 0 {
			t.Fatalf("the keeper is %v", got)
		}
	}
	f.Signal(unix.SIGKILL)
	f.WaitExit()
	if _, err := os.Stat("/proc/self/stat"); err == nil {
		f.isGone(0) // by the parent-death signal
	}
	f.lives(1)
}
