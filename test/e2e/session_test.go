package e2e

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"
)

// Options say what start starts. The zero value of a field is its usual case.
type Options struct {
	// Flags are wireguardrun's own, Command is the server's argument vector.
	// The command line is: wireguardrun Flags -- Command. Without a Command
	// there is no "--" either, so Flags alone can be any command line.
	// Without a --wire flag, or a variable for it, a Command gets the wire
	// itself (fds): most tests are about that, and the relay has its own.
	Flags   []string
	Command []string
	// Role runs the test binary as this role in place of Command; RoleArgs
	// are its arguments.
	Role     string
	RoleArgs []string
	// Bare starts the command without wireguardrun, to show what the client
	// would get without it.
	Bare bool
	// Prefix goes in front of everything, for a start that Go can't make
	// itself: {"sh", "-c", `exec "$0" "$@" <&-`} starts with fd 0 closed.
	Prefix []string

	Env []string // added to the environment; a later value wins
	Dir string   // working directory; default: this package's

	// Sockets makes fd 0, 1 and 2 one end of a socket pair each, as clients
	// on Node.js do, in place of pipes (Unix).
	Sockets bool
	// Stdin, Stdout and StderrTo replace a stream. The caller keeps the file
	// and closes it; Send, Expect and Stderr then have nothing to work on.
	Stdin, Stdout, StderrTo *os.File
	// Files become fd 3, 4 and so on (Unix).
	Files []*os.File
}

// session is one started command. A test talks to it with Send and Expect,
// ends it with CloseStdin and Wait, and may look at Stderr at any time. All
// methods are for the test's own goroutine. Every wait is limited; a wait
// that runs out, like any other surprise, ends the test, and a failed test
// prints the transcript. What is left of the session at the end of the test
// is killed.
type session struct {
	t     testing.TB
	cmd   *exec.Cmd
	id    string
	stdin *os.File // our end; nil once closed or when replaced
	out   *stream  // nil when replaced
	err   *stream  // nil when replaced
	log   transcript

	exited chan struct{} // closed when the process has been waited for
	status Status        // valid then
}

// Status is how a process ended. The zero value is success.
type Status struct {
	Code   int            // exit code; 0 when a signal ended it
	Signal syscall.Signal // the signal that ended it; 0 when it exited (always, on Windows)
}

func (s Status) String() string {
	if s.Signal != 0 {
		return fmt.Sprintf("signal %d (%v)", int(s.Signal), s.Signal)
	}
	return fmt.Sprintf("exit code %d", s.Code)
}

var sessions atomic.Int64

// start starts the command and returns at once.
func start(t testing.TB, o Options) *session {
	t.Helper()
	s := &session{
		t:      t,
		id:     fmt.Sprintf("%d.%d", os.Getpid(), sessions.Add(1)),
		exited: make(chan struct{}),
	}
	argv, env := o.commandLine()
	s.cmd = exec.Command(argv[0], argv[1:]...)
	s.cmd.Env = environ(append(append(env, sessionEnv+"="+s.id), o.Env...)...)
	s.cmd.Dir = o.Dir
	s.cmd.ExtraFiles = o.Files
	setGroup(s.cmd)

	// The child's ends are closed here once it has them: an end kept open
	// would hide every end of file.
	var childEnds []*os.File
	end := func(replacement *os.File, childReads bool) (child, ours *os.File) {
		if replacement != nil {
			return replacement, nil
		}
		child, ours, err := pair(o.Sockets, childReads)
		if err != nil {
			t.Fatalf("making the streams: %v", err)
		}
		childEnds = append(childEnds, child)
		return child, ours
	}
	var ourOut, ourErr, child *os.File
	child, s.stdin = end(o.Stdin, true)
	s.cmd.Stdin = child
	child, ourOut = end(o.Stdout, false)
	s.cmd.Stdout = child
	child, ourErr = end(o.StderrTo, false)
	s.cmd.Stderr = child

	err := startCommand(s.cmd)
	for _, f := range childEnds {
		f.Close()
	}
	if err != nil {
		for _, f := range []*os.File{s.stdin, ourOut, ourErr} {
			if f != nil {
				f.Close()
			}
		}
		t.Fatalf("starting %q: %v", argv, err)
	}
	s.log.add("started", strings.Join(argv, " "))
	s.out = s.read(ourOut, "<")
	s.err = s.read(ourErr, "!")
	go func() {
		s.cmd.Wait() // its error is the status again
		s.status = statusOf(s.cmd.ProcessState)
		s.log.add("ended", s.status.String())
		close(s.exited)
	}()
	t.Cleanup(s.cleanup)
	return s
}

// namesMode reports whether the test says how the server gets the wire.
func (o Options) namesMode() bool {
	return slices.ContainsFunc(o.Flags, func(f string) bool { return strings.HasPrefix(f, "--wire") || f == "attach" }) ||
		slices.ContainsFunc(o.Env, func(kv string) bool { return strings.HasPrefix(kv, "WIREGUARDRUN_WIRE=") })
}

func (o Options) commandLine() (argv, env []string) {
	command := o.Command
	if o.Role != "" {
		command, env = roleCommand(o.Role, o.RoleArgs...)
	}
	argv = append(argv, o.Prefix...)
	if !o.Bare {
		argv = append(argv, wireguardrun)
		if len(command) > 0 && !o.namesMode() {
			argv = append(argv, "--wire=fds") // see Options
		}
		argv = append(argv, o.Flags...)
		if len(command) > 0 {
			argv = append(argv, "--")
		}
	}
	return append(argv, command...), env
}

func pair(sockets, childReads bool) (child, ours *os.File, err error) {
	if sockets {
		return socketPair()
	}
	r, w, err := os.Pipe()
	if childReads {
		return r, w, err
	}
	return w, r, err
}

// run starts the command, sends it input and then end of file, waits for its
// end, and returns all that it wrote.
func run(t testing.TB, o Options, input string) (stdout, stderr string, status Status) {
	t.Helper()
	s := start(t, o)
	if s.stdin != nil {
		// A command that doesn't read its input is no failure here.
		s.send(input)
		s.CloseStdin()
	}
	status = s.Wait()
	return s.Rest(), s.Stderr(), status
}

// Pid is the process that was started: wireguardrun, or Prefix or the bare
// command when there are such.
func (s *session) Pid() int { return s.cmd.Process.Pid }

// Send writes to the command's standard input.
func (s *session) Send(text string) {
	s.t.Helper()
	if err := s.send(text); err != nil {
		s.t.Fatalf("sending %s: %v", clip(text), err)
	}
}

func (s *session) send(text string) error {
	if s.stdin == nil {
		return errors.New("stdin is closed")
	}
	s.log.add(">", text)
	done := make(chan error, 1)
	go func() {
		_, err := io.WriteString(s.stdin, text)
		done <- err
	}()
	select {
	case err := <-done:
		return err
	case <-time.After(time.Until(limit(s.t))):
		return errors.New("nothing reads stdin")
	}
}

// CloseStdin ends the command's standard input. It may be called again.
func (s *session) CloseStdin() {
	if s.stdin != nil {
		s.log.add("> end of file", "")
		s.stdin.Close()
		s.stdin = nil
	}
}

// CloseStdout drops our end of the command's standard output: the client's
// reader is gone.
func (s *session) CloseStdout() { s.out.close() }

// Expect takes the next len(want) bytes from standard output, which must be
// want. It fails as soon as a byte differs.
func (s *session) Expect(want string) {
	s.t.Helper()
	got := s.take("standard output to have "+clip(want), func(data []byte, _ bool) (int, bool) {
		n := min(len(data), len(want))
		return n, n == len(want) || string(data[:n]) != want[:n]
	})
	if got != want {
		s.t.Fatalf("standard output has %s, want %s", clip(got), clip(want))
	}
}

// ExpectLine is Expect for want and a line feed.
func (s *session) ExpectLine(want string) {
	s.t.Helper()
	s.Expect(want + "\n")
}

// ReadLine takes the next line from standard output, without its line feed.
func (s *session) ReadLine() string {
	s.t.Helper()
	return strings.TrimSuffix(s.take("a line on standard output", func(data []byte, _ bool) (int, bool) {
		i := bytes.IndexByte(data, '\n')
		return i + 1, i >= 0
	}), "\n")
}

// ExpectEnd waits for the end of standard output, before which nothing more
// may come.
func (s *session) ExpectEnd() {
	s.t.Helper()
	if rest := s.Rest(); rest != "" {
		s.t.Fatalf("standard output goes on with %s, want its end", clip(rest))
	}
}

// Rest waits for the end of standard output and takes all that is left of it.
func (s *session) Rest() string {
	s.t.Helper()
	if s.out == nil {
		return ""
	}
	return s.take("the end of standard output", func(data []byte, ended bool) (int, bool) {
		return len(data), ended
	})
}

// take waits until enough, which looks at the bytes not taken yet and at
// whether the stream has ended, says how many to take and true.
func (s *session) take(what string, enough func([]byte, bool) (int, bool)) string {
	s.t.Helper()
	var got string
	ok := s.out.wait(limit(s.t), func(b *stream) bool {
		n, ok := enough(b.data[b.taken:], b.ended)
		if ok {
			got = string(b.data[b.taken : b.taken+n])
			b.taken += n
		}
		return ok
	})
	if !ok {
		s.t.Fatalf("waiting for %s: %s", what, s.out.state())
	}
	return got
}

// Stderr is what has come on standard error so far. After Wait it is all.
func (s *session) Stderr() string {
	if s.err == nil {
		return ""
	}
	s.err.Lock()
	defer s.err.Unlock()
	return string(s.err.data)
}

// WaitStderr waits until standard error contains the text. What was there
// before the call counts.
func (s *session) WaitStderr(text string) {
	s.t.Helper()
	ok := s.err.wait(limit(s.t), func(b *stream) bool {
		return bytes.Contains(b.data, []byte(text))
	})
	if !ok {
		s.t.Fatalf("waiting for %q on standard error: %s", text, s.err.state())
	}
}

// Signal sends a signal to the started process alone.
func (s *session) Signal(sig os.Signal) {
	s.t.Helper()
	s.log.add("signal", sig.String())
	if err := s.cmd.Process.Signal(sig); err != nil {
		s.t.Fatalf("sending %v: %v", sig, err)
	}
}

// WaitExit waits for the end of the started process only. Use it where
// something that keeps the streams open is meant to live on.
func (s *session) WaitExit() Status {
	s.t.Helper()
	select {
	case <-s.exited:
		return s.status
	case <-time.After(time.Until(limit(s.t))):
		s.t.Fatal("the process does not end")
		panic("unreachable")
	}
}

// Wait waits for the end of the process and then for the end of its standard
// output and error, so it also fails when something left behind keeps them.
func (s *session) Wait() Status {
	s.t.Helper()
	status := s.WaitExit()
	for _, b := range []*stream{s.out, s.err} {
		if b != nil && !b.wait(limit(s.t), func(b *stream) bool { return b.ended }) {
			s.t.Fatalf("the process has ended (%v), but something keeps its streams open: processes %v",
				status, s.Processes())
		}
	}
	return status
}

// ExpectExit is Wait for an exact outcome.
func (s *session) ExpectExit(want Status) {
	s.t.Helper()
	if got := s.Wait(); got != want {
		s.t.Fatalf("the process ended with %v, want %v", got, want)
	}
}

// Processes are the live processes of this session, the started one among
// them, wherever they are by now: the mark is in the environment they were
// started with. Linux only, elsewhere always empty.
func (s *session) Processes() []int {
	var found []int
	entries, _ := os.ReadDir("/proc")
	for _, e := range entries {
		pid, err := strconv.Atoi(e.Name())
		if err != nil {
			continue
		}
		env, err := os.ReadFile("/proc/" + e.Name() + "/environ")
		if err != nil {
			continue // ended, or not ours
		}
		for kv := range bytes.SplitSeq(env, []byte{0}) {
			if string(kv) == sessionEnv+"="+s.id {
				found = append(found, pid)
				break
			}
		}
	}
	return found
}

func (s *session) cleanup() {
	select {
	case <-s.exited:
	default:
		killGroup(s.cmd.Process)
		<-s.exited
	}
	s.killRest()
	if s.stdin != nil {
		s.stdin.Close()
	}
	for _, b := range []*stream{s.out, s.err} {
		if b != nil {
			b.close()
			<-b.done
		}
	}
	if s.t.Failed() {
		s.t.Logf("transcript:\n%s", s.log.String())
	}
}

// killRest kills what the kill of the group has not reached: the server leads
// a group of its own.
func (s *session) killRest() {
	for {
		pids := s.Processes()
		if len(pids) == 0 {
			return
		}
		for _, pid := range pids {
			p, err := os.FindProcess(pid)
			if err == nil {
				err = p.Kill()
			}
			if err != nil && !errors.Is(err, os.ErrProcessDone) {
				s.t.Errorf("process %d of the session can't be killed: %v", pid, err)
				return
			}
		}
	}
}

// stream collects what comes from one of the command's outputs, so that the
// command never waits for the test.
type stream struct {
	sync.Mutex
	data    []byte
	taken   int // how much of data Expect and the like have consumed
	ended   bool
	err     error         // why, when it was no plain end of file
	changed chan struct{} // closed and replaced at every change
	done    chan struct{} // closed when the reader has ended

	file *os.File
}

// read starts to collect from f, which it owns. It returns nil for nil.
func (s *session) read(f *os.File, mark string) *stream {
	if f == nil {
		return nil
	}
	b := &stream{changed: make(chan struct{}), done: make(chan struct{}), file: f}
	go func() {
		defer close(b.done)
		defer f.Close()
		buf := make([]byte, 64<<10)
		for {
			n, err := f.Read(buf)
			if n > 0 {
				s.log.add(mark, string(buf[:n]))
			}
			b.Lock()
			b.data = append(b.data, buf[:n]...)
			if err != nil {
				b.ended = true
				if err != io.EOF {
					b.err = err
				}
			}
			close(b.changed)
			b.changed = make(chan struct{})
			b.Unlock()
			if err != nil {
				return
			}
		}
	}()
	return b
}

// wait calls ready, with the lock held, now and after every change, until it
// says true. It returns false at the limit, and when the stream has ended and
// so can't change any more.
func (b *stream) wait(end time.Time, ready func(*stream) bool) bool {
	timeout := time.After(time.Until(end))
	for {
		b.Lock()
		ok, ended, changed := ready(b), b.ended, b.changed
		b.Unlock()
		if ok || ended {
			return ok
		}
		select {
		case <-changed:
		case <-timeout:
			return false
		}
	}
}

// state says what there is, for a message about a wait that failed.
func (b *stream) state() string {
	b.Lock()
	defer b.Unlock()
	how := "nothing more comes"
	if b.ended {
		how = "it has ended"
		if b.err != nil {
			how += fmt.Sprintf(" (%v)", b.err)
		}
	}
	return fmt.Sprintf("%s; not taken yet: %s", how, clip(string(b.data[b.taken:])))
}

func (b *stream) close() { b.file.Close() }

// transcript is what happened, in the order in which we saw it.
type transcript struct {
	sync.Mutex
	begin   time.Time
	entries []string
	size    int
}

func (l *transcript) add(mark, text string) {
	l.Lock()
	defer l.Unlock()
	if l.begin.IsZero() {
		l.begin = time.Now()
	}
	const most = 64 << 10
	if l.size > most {
		return
	}
	entry := fmt.Sprintf("%8.3fs %s", time.Since(l.begin).Seconds(), mark)
	if text != "" {
		entry += " " + clip(text)
	}
	if l.size += len(entry); l.size > most {
		entry = "... the rest is left out"
	}
	l.entries = append(l.entries, entry)
}

func (l *transcript) String() string {
	l.Lock()
	defer l.Unlock()
	return strings.Join(l.entries, "\n")
}

// clip quotes text, and leaves out the middle of a long one.
func clip(text string) string {
	const most = 1000
	if len(text) <= most {
		return strconv.Quote(text)
	}
	half := most / 2
	return fmt.Sprintf("%q ... %d bytes ... %q", text[:half], len(text)-2*half, text[len(text)-half:])
}
