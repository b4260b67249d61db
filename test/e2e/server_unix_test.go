//go:build unix

package e2e

import (
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// What the test run itself has inherited is not for the processes of the tests,
// which count their descriptors.
func init() {
	if os.Getenv(roleEnv) == "" {
		for n := 3; n < 1024; n++ {
			unix.CloseOnExec(n)
		}
	}
}

// handedWire is the server's wire, by the numbers in the environment, or
// descriptors 0 and 1 without them.
func handedWire() (in io.Reader, out io.Writer) {
	r, w := os.Getenv("WIREGUARDRUN_IN"), os.Getenv("WIREGUARDRUN_OUT")
	if r == "" && w == "" {
		return os.Stdin, os.Stdout
	}
	inFile := os.NewFile(uintptr(number(r)), "wire in")
	outFile := os.NewFile(uintptr(number(w)), "wire out")
	// Not for what the server starts.
	unix.CloseOnExec(number(r))
	unix.CloseOnExec(number(w))
	return inFile, outFile
}

func closeDescriptor(n int) error { return unix.Close(n) }

// describe opens nothing before it has looked.
func describe() childReport {
	r := childReport{
		Pid:    os.Getpid(),
		Parent: os.Getppid(),
		Group:  unix.Getpgrp(),
	}
	if front, err := unix.IoctlGetInt(2, unix.TIOCGPGRP); err == nil {
		r.Front = front
	}
	for n := range 1024 {
		flags, err := unix.FcntlInt(uintptr(n), unix.F_GETFD, 0)
		if err != nil || flags&unix.FD_CLOEXEC != 0 {
			continue // closed, or opened by Go's own runtime
		}
		id, err := identity(n)
		if err != nil {
			panic(err)
		}
		status, err := unix.FcntlInt(uintptr(n), unix.F_GETFL, 0)
		if err != nil {
			panic(err)
		}
		r.Files = append(r.Files, descriptor{n, id, status&unix.O_NONBLOCK != 0})
	}
	for _, sig := range []syscall.Signal{unix.SIGHUP, unix.SIGINT} {
		if signal.Ignored(sig) {
			r.Ignored = append(r.Ignored, int(sig))
		}
	}
	for _, arg := range os.Args[1:] {
		r.Args = append(r.Args, []byte(arg))
	}
	for _, kv := range os.Environ() {
		r.Env = append(r.Env, []byte(kv))
	}
	var err error
	if r.Dir, err = os.Getwd(); err != nil {
		panic(err)
	}
	return r
}

// identity is what the product's own environment contract tells of a
// descriptor.
func identity(fd int) (string, error) {
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil {
		return "", err
	}
	return fmt.Sprintf("%x:%x", st.Dev, st.Ino), nil
}

// identityOf is the identity of a file of this process.
func identityOf(t testing.TB, f *os.File) string {
	t.Helper()
	var id string
	onDescriptor(t, f, func(fd int) error {
		var err error
		id, err = identity(fd)
		return err
	})
	return id
}

// identityOfPath is the identity of a named file.
func identityOfPath(t testing.TB, path string) string {
	t.Helper()
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	return identityOf(t, f)
}

// onDescriptor does not use Fd, which makes a file blocking.
func onDescriptor(t testing.TB, f *os.File, do func(fd int) error) {
	t.Helper()
	conn, err := f.SyscallConn()
	if err != nil {
		t.Fatal(err)
	}
	var failed error
	if err := conn.Control(func(fd uintptr) { failed = do(int(fd)) }); err != nil {
		t.Fatal(err)
	}
	if failed != nil {
		t.Fatal(failed)
	}
}

// file returns a descriptor, the zero value if it is not there.
func (r childReport) file(number int) descriptor {
	for _, d := range r.Files {
		if d.Number == number {
			return d
		}
	}
	return descriptor{}
}

// numbers lists the descriptors.
func (r childReport) numbers() []int {
	var list []int
	for _, d := range r.Files {
		list = append(list, d.Number)
	}
	return list
}

// readReport gets it from the file that the server wrote: see reportEnv.
func readReport(t testing.TB, path string) childReport {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatalf("the server wrote no report: %v", err)
	}
	return parseReport(t, text)
}

// wantPipe checks that a descriptor of the server is the other end of a pipe of
// ours. Only Linux gives both ends one identity.
func wantPipe(t *testing.T, r childReport, number int, ours *os.File) {
	t.Helper()
	if got, want := r.file(number).ID, identityOf(t, ours); got != want && runtime.GOOS == "linux" {
		t.Errorf("descriptor %d is %s, want the client's pipe, %s", number, got, want)
	}
}

// systemCommands are those that only Unix has.
//
//	catch    say on descriptor 2 which of TERM, INT and HUP come, and start a
//	         child that does so too
//	daemon   start a process in a session of its own that keeps descriptors 1
//	         and 2, and answer with its process id
var systemCommands = map[string]func(arg string) string{
	"catch":  func(string) string { return catch("server", true) },
	"daemon": func(string) string { return launchDaemon() },
}

// catcher is the child of a server that catches signals. It ends when the
// server does.
const catcher = "catcher"

var _ = role(catcher, func() int {
	catch("child", false)
	fmt.Println("ready")
	io.Copy(io.Discard, os.Stdin)
	return 0
})

func catch(who string, withChild bool) string {
	caught := make(chan os.Signal, 16)
	signal.Notify(caught, unix.SIGTERM, unix.SIGINT, unix.SIGHUP)
	go func() {
		for sig := range caught {
			fmt.Fprintf(os.Stderr, "%s: %v\n", who, sig)
		}
	}()
	if !withChild {
		return ""
	}
	argv, env := roleCommand(catcher)
	cmd := exec.Command(argv[0], argv[1:]...)
	cmd.Env = append(os.Environ(), env...)
	cmd.Stderr = os.Stderr
	hold, err := cmd.StdinPipe()
	if err != nil {
		return err.Error()
	}
	ready, err := cmd.StdoutPipe()
	if err != nil {
		return err.Error()
	}
	if err := cmd.Start(); err != nil {
		return err.Error()
	}
	heldOpen = append(heldOpen, hold)
	if _, err := io.ReadFull(ready, make([]byte, len("ready\n"))); err != nil {
		return err.Error()
	}
	return "ok"
}

// heldOpen keeps what has to last as long as the process from the collector.
var heldOpen []io.Closer

// daemon lives until it is killed, or until it is certain that nobody will.
var daemon = role("daemon", func() int {
	time.Sleep(2 * patience)
	return 0
})

func launchDaemon() string {
	argv, env := roleCommand(daemon)
	cmd := exec.Command(argv[0], argv[1:]...)
	cmd.Env = append(os.Environ(), env...)
	cmd.Stdout, cmd.Stderr = os.Stdout, os.Stderr
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if err := cmd.Start(); err != nil {
		return err.Error()
	}
	return fmt.Sprint(cmd.Process.Pid)
}

// wrapped puts a role in front of the command, which starts or becomes what
// comes after its own arguments and "--". It may be applied again.
func wrapped(o Options, wrapper string, args ...string) Options {
	argv, env := roleCommand(wrapper, append(args, "--")...)
	o.Prefix = append(argv, o.Prefix...)
	chain := []string{o.Role}
	for _, kv := range o.Env {
		if next, ok := strings.CutPrefix(kv, nextRoleEnv+"="); ok {
			chain = strings.Split(next, ",")
		}
	}
	o.Env = append(slices.Clone(o.Env), env...)
	// The last value counts. Each wrapper takes its own name off: see unwrap.
	o.Env = append(o.Env, nextRoleEnv+"="+strings.Join(append([]string{wrapper}, chain...), ","))
	return o
}

const nextRoleEnv = "WGR_NEXT"

// unwrap returns the arguments of this wrapper and the command that it is for,
// whose role it puts into the environment.
func unwrap() (args, command []string) {
	_, next, _ := strings.Cut(os.Getenv(nextRoleEnv), ",")
	os.Setenv(nextRoleEnv, next)
	if role, _, _ := strings.Cut(next, ","); role != "" {
		os.Setenv(roleEnv, role)
	}
	at := slices.Index(os.Args, "--")
	return os.Args[1:at], os.Args[at+1:]
}

// prepare changes itself step by step and then becomes the command:
//
//	close:N        close descriptor N
//	dup:FROM:TO    make TO a duplicate that is passed on
//	nonblock:N     set O_NONBLOCK
//	ignore:SIG     ignore a signal, by its number
//	listen:N       set LISTEN_PID to itself and LISTEN_FDS to N
//	core           let core files be written
//	user:N         be user N and no more root (Linux)
var prepare = role("prepare", func() int {
	steps, argv := unwrap()
	path, err := exec.LookPath(argv[0])
	for _, step := range steps {
		if err == nil && strings.HasPrefix(step, "user:") {
			// That user might not come through the directories.
			path, err = openedPath(path)
		}
		if err == nil {
			err = prepareStep(step)
		}
	}
	if err == nil {
		err = unix.Exec(path, argv, os.Environ())
	}
	fmt.Fprintf(os.Stderr, "prepare: %v\n", err)
	return 1
})

// openedPath returns a path for which no directory has to be searched (Linux).
func openedPath(path string) (string, error) {
	fd, err := unix.Open(path, unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return "", err
	}
	fd, err = unix.FcntlInt(uintptr(fd), unix.F_DUPFD_CLOEXEC, 500)
	return fmt.Sprintf("/proc/self/fd/%d", fd), err
}

func prepareStep(step string) error {
	name, rest, _ := strings.Cut(step, ":")
	var args []int
	for arg := range strings.SplitSeq(rest, ":") {
		if arg != "" {
			args = append(args, number(arg))
		}
	}
	switch name {
	case "close":
		return unix.Close(args[0])
	case "dup":
		return duplicateTo(args[0], args[1])
	case "nonblock":
		return unix.SetNonblock(args[0], true)
	case "ignore":
		signal.Ignore(syscall.Signal(args[0]))
		return nil
	case "listen":
		os.Setenv("LISTEN_PID", fmt.Sprint(os.Getpid()))
		os.Setenv("LISTEN_FDS", fmt.Sprint(args[0]))
		return nil
	case "core":
		return unix.Setrlimit(unix.RLIMIT_CORE, &unix.Rlimit{Cur: unix.RLIM_INFINITY, Max: unix.RLIM_INFINITY})
	case "user":
		if err := unix.Setgroups(nil); err != nil {
			return err
		}
		if err := unix.Setgid(args[0]); err != nil {
			return err
		}
		return unix.Setuid(args[0])
	}
	return fmt.Errorf("no such step: %s", step)
}

// duplicateTo is dup2, by what every system has.
func duplicateTo(from, to int) error {
	_ = unix.Close(to)
	got, err := unix.FcntlInt(uintptr(from), unix.F_DUPFD, to)
	if err == nil && got != to {
		err = fmt.Errorf("descriptor %d became %d", to, got)
	}
	return err
}

// prepared makes the steps of prepare come before the command.
func prepared(o Options, steps ...string) Options { return wrapped(o, prepare, steps...) }
