//go:build linux

package stress

import (
	"bufio"
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/creack/pty"
	"golang.org/x/sys/unix"
)

// outcome is what one session showed.
type outcome struct {
	kind      string
	details   string
	survivors []process
	lost      int      // frames that were written in full and did not come
	wrong     int      // frames that came and were not the ones that had to come
	checked   bool     // frames were checked: the client lived
	frames    int      // that came
	changed   []string // flags and modes of the wire
	notOurs   int      // flags that nobody could put back: the wrapper was killed
	daemons   int      // that stayed by design
	took      time.Duration
	err       error
}

// session is one client, its wrapper, the server with its tree and the wire.
type session struct {
	rng  *rand.Rand
	kind kind
	mark string
	file string // where the server counts its frames

	client, wrapper int
	name            string // the wrapper's for the run, once it was seen
	control         *os.File
	reports         chan string
	in, out         int // our duplicates of what the wrapper has as 0 and 1

	flagsIn, flagsOut int // before the start
	modes             *unix.Termios

	gone     bool // the client can't tell any more what it got
	killed   bool // the wrapper was, by us
	all      bool // daemons have to go too
	stubborn bool
	ownGroup bool
	tty      bool
	relay    bool // the wrapper is in the path, and has frames in its hands
	stop     time.Duration
	describe []string
}

// The times of the rules, and what a busy machine may add.
const (
	silence = 2 * time.Second
	peace   = 2 * time.Second
	later   = 5 * time.Second
	margin  = 4 * time.Second
)

func (s *session) note(format string, args ...any) {
	s.describe = append(s.describe, fmt.Sprintf(format, args...))
}

func (s *session) run() (o outcome) {
	o.kind = s.kind.name
	defer func() { o.details = strings.Join(s.describe, ", ") }()
	defer s.sweep()
	if o.err = s.start(); o.err != nil {
		return o
	}
	s.pause()
	s.kind.do(s)
	// Some kinds end nothing, or nothing that is stubborn.
	if !s.waitEnd(s.wrapper, time.Duration(s.rng.IntN(400))*time.Millisecond) {
		s.finish()
	}
	if s.relay {
		s.order("read") // the relay stays until the client has taken all
	}
	begun := time.Now()
	limit := begun.Add(silence + peace + s.stop + later + margin)
	if !s.gone && !s.killed {
		s.waitEnd(s.wrapper, time.Until(limit))
	}
	for {
		o.survivors, o.daemons = s.left()
		if len(o.survivors) == 0 && !alive(s.wrapper) || time.Now().After(limit) {
			break
		}
		time.Sleep(30 * time.Millisecond)
	}
	o.took = time.Since(begun)
	if alive(s.wrapper) {
		o.survivors = append(o.survivors, process{pid: s.wrapper, name: "the wrapper itself"})
	}
	s.compareModes(&o)
	s.sweep() // daemons have the wire too, and would keep its end from us
	_ = unix.Close(s.in)
	_ = unix.Close(s.out)
	s.in, s.out = -1, -1
	if !s.gone {
		o.err = s.checkFrames(&o)
	}
	return o
}

// compareModes looks whether the flags and modes of the wire are as before.
func (s *session) compareModes(o *outcome) {
	for _, d := range []struct {
		name        string
		now, before int
	}{{"in", statusFlags(s.in), s.flagsIn}, {"out", statusFlags(s.out), s.flagsOut}} {
		switch {
		case d.now == d.before:
		case s.killed:
			o.notOurs++
		default:
			o.changed = append(o.changed, fmt.Sprintf("%s: flags %#x, were %#x", d.name, d.now, d.before))
		}
	}
	if s.modes != nil {
		now, err := unix.IoctlGetTermios(s.in, unix.TCGETS)
		switch {
		case err != nil || *now == *s.modes:
		case s.killed:
			o.notOurs++
		default:
			o.changed = append(o.changed, fmt.Sprintf("terminal modes %+v, were %+v", now, s.modes))
		}
	}
}

// checkFrames lets the client read to the end of the wire, and compares what
// has come with what the server has counted.
func (s *session) checkFrames(o *outcome) error {
	s.order("read")
	for limit := time.After(20 * time.Second); ; {
		select {
		case line, ok := <-s.reports:
			if !ok {
				return fmt.Errorf("the client has ended without a report")
			}
			if _, err := fmt.Sscanf(line, "frames %d %d", &o.frames, &o.wrong); err != nil {
				continue
			}
			var count [8]byte
			if data, err := os.ReadFile(s.file); err == nil && len(data) == 8 {
				copy(count[:], data)
			}
			if s.killed && s.relay {
				return nil // it took with it what was in its hands
			}
			o.checked = true
			o.lost = max(int(binary.LittleEndian.Uint64(count[:]))-o.frames, 0)
			return nil
		case <-limit:
			return fmt.Errorf("the client does not see the end of the wire")
		}
	}
}

// openWire makes the wire of a random kind. [0] of each direction is read, except
// in a socket pair.
func (s *session) openWire() (in, out [2]int, err error) {
	switch {
	case s.tty:
		master, slave, err := pty.Open()
		if err != nil {
			return in, out, err
		}
		defer master.Close()
		defer slave.Close()
		if err := rawModes(int(slave.Fd())); err != nil {
			return in, out, err
		}
		in[0], in[1] = dup(slave.Fd()), dup(master.Fd())
		out[0], out[1] = dup(master.Fd()), dup(slave.Fd())
		s.note("terminal")
	case s.rng.IntN(4) == 0:
		for _, p := range []*[2]int{&in, &out} {
			fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
			if err != nil {
				return in, out, err
			}
			*p = fds
		}
		s.note("sockets")
	default:
		for _, p := range []*[2]int{&in, &out} {
			if err := unix.Pipe2(p[:], unix.O_CLOEXEC); err != nil {
				return in, out, err
			}
		}
	}
	return in, out, nil
}

// commandLine chooses at random what the client starts, as its argument vector
// and environment.
func (s *session) commandLine() (argv, env []string) {
	r := s.rng
	env = slices.DeleteFunc(os.Environ(), func(kv string) bool { return strings.HasPrefix(kv, "WIREGUARDRUN_") })
	env = append(env, roleEnv+"=client", "WGR_STRESS_SESSION="+s.mark, "WGR_STRESS_FILE="+s.file)
	words := pick(r, "polite", "stubborn")
	s.stubborn = words == "stubborn"
	if full := r.IntN(4) == 0 && !s.tty; full {
		env = append(env, "WGR_STRESS_STALLED=1")
		words += " stalled"
	}
	if s.tty {
		words += " tty"
		env = append(env, "WGR_STRESS_TTY=1")
	}
	if s.ownGroup = s.kind.ownGroup || r.IntN(2) == 0; s.ownGroup {
		env = append(env, "WGR_STRESS_OWN_GROUP=1")
		s.note("own group")
	}
	wire := pick(r, "fds", "auto", "auto", "stdio")
	s.relay = wire != "fds"
	if wire == "stdio" || wire == "auto" && r.IntN(2) == 0 {
		words += " unmodified"
	}
	words += pick(r, "", " noisy")
	s.note("%s, server %s", wire, words)
	env = append(env, "WGR_STRESS_SERVER="+words)
	argv = []string{os.Args[0], wireguardrun, "--wire=" + wire, "--log-level=error"}
	if s.stop != later {
		argv = append(argv, "--stop-timeout="+s.stop.String())
	}
	argv = append(argv, "--env="+roleEnv+"=server", "--")
	var leaves []string
	for range r.IntN(4) {
		leaf := pick(r, "group", "own", "session", "twice") + " " + pick(r, "polite", "polite", "stubborn", "stubborn", "births") + pick(r, "", " wire")
		leaves = append(leaves, leaf)
		s.note("%s", leaf)
	}
	if r.IntN(3) == 0 {
		script := "echo $$ > \"$WGR_STRESS_FILE.pid\"; "
		for _, l := range leaves {
			script += shellLeaf(l)
		}
		argv = append(argv, "sh", "-c", script+"exec \"$0\"", os.Args[0])
		s.note("by a shell")
	} else {
		argv = append(append(argv, os.Args[0]), leaves...)
	}
	return argv, env
}

// start starts the client, which starts the rest.
func (s *session) start() error {
	in, out, err := s.openWire()
	if err != nil {
		return err
	}
	var errs, control, report [2]int
	for _, p := range []*[2]int{&errs, &control, &report} {
		if err := unix.Pipe2(p[:], unix.O_CLOEXEC); err != nil {
			return err
		}
	}
	s.in, s.out = in[0], out[1]
	for _, fd := range []int{s.in, s.out} {
		if s.rng.IntN(4) == 0 {
			_ = unix.SetNonblock(fd, true)
			s.note("%d non-blocking", fd)
		}
	}
	s.flagsIn, s.flagsOut = statusFlags(s.in), statusFlags(s.out)
	if s.tty {
		modes, err := unix.IoctlGetTermios(s.in, unix.TCGETS)
		if err != nil {
			return err
		}
		s.modes = modes
	}
	argv, env := s.commandLine()
	files := make([]uintptr, clientFiles)
	for n, fd := range []int{control[0], report[1], 2, in[0], in[1], out[0], out[1], errs[0], errs[1]} {
		files[n] = uintptr(fd)
	}
	attr := &syscall.ProcAttr{Env: env, Files: files, Sys: &syscall.SysProcAttr{Setpgid: !s.tty, Setsid: s.tty}}
	s.client, err = syscall.ForkExec(os.Args[0], argv, attr)
	for _, fd := range []int{in[1], out[0], errs[0], errs[1], control[0], report[1]} {
		_ = unix.Close(fd)
	}
	if err != nil {
		return err
	}
	s.control = os.NewFile(uintptr(control[1]), "control")
	s.reports = make(chan string, 8)
	go func() {
		defer close(s.reports)
		f := os.NewFile(uintptr(report[0]), "report")
		defer f.Close()
		for lines := bufio.NewScanner(f); lines.Scan(); {
			s.reports <- lines.Text()
		}
	}()
	select {
	case line := <-s.reports:
		if _, err := fmt.Sscanf(line, "wrapper %d", &s.wrapper); err != nil {
			return fmt.Errorf("the client says %q", line)
		}
	case <-time.After(20 * time.Second):
		return fmt.Errorf("the client does not start")
	}
	return nil
}

func pick(r *rand.Rand, words ...string) string { return words[r.IntN(len(words))] }

func dup(fd uintptr) int {
	n, _ := unix.FcntlInt(fd, unix.F_DUPFD_CLOEXEC, 3)
	return n
}

func rawModes(fd int) error {
	modes, err := unix.IoctlGetTermios(fd, unix.TCGETS)
	if err != nil {
		return err
	}
	modes.Iflag &^= unix.ICRNL | unix.INLCR
	modes.Oflag &^= unix.OPOST
	modes.Lflag &^= unix.ECHO | unix.ICANON | unix.ISIG | unix.IEXTEN
	return unix.IoctlSetTermios(fd, unix.TCSETS, modes)
}

func statusFlags(fd int) int {
	flags, _ := unix.FcntlInt(uintptr(fd), unix.F_GETFL, 0)
	return flags
}

func (s *session) order(word string) { _, _ = s.control.WriteString(word + "\n") }

// pause waits for a random while, which may be none.
func (s *session) pause() {
	most := []time.Duration{5 * time.Millisecond, 50 * time.Millisecond, 300 * time.Millisecond}[s.rng.IntN(3)]
	d := time.Duration(s.rng.Int64N(int64(most)))
	s.note("%v in", d.Round(100*time.Microsecond))
	time.Sleep(d)
}

// waitEnd waits for the end of a process, which may be a zombie then.
func (s *session) waitEnd(pid int, limit time.Duration) bool {
	fd := pidfd(pid)
	if fd < 0 {
		return true
	}
	defer unix.Close(fd)
	end := time.Now().Add(limit)
	for {
		fds := []unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}
		n, err := unix.Poll(fds, max(int(time.Until(end).Milliseconds()), 0))
		if n > 0 {
			return true
		}
		if err != unix.EINTR && !time.Now().Before(end) {
			return false
		}
	}
}

// find waits for the server and the keeper to be there, for a bounded time.
func (s *session) find() (server, keeper int) {
	for limit := time.Now().Add(time.Second); time.Now().Before(limit) && alive(s.wrapper); time.Sleep(time.Millisecond) {
		if server, keeper = children(s.wrapper); server != 0 && keeper != 0 {
			break
		}
	}
	return server, keeper
}

// serverGroup is the id of the server's group, 0 if it never was.
func (s *session) serverGroup() int {
	text, _ := os.ReadFile(s.file + ".pid")
	pid, _ := strconv.Atoi(strings.TrimSpace(string(text)))
	return pid
}

// left returns what is left of the session and must not be, and how many
// daemons are left as is their right.
func (s *session) left() (bad []process, daemons int) {
	group := s.serverGroup()
	all := processes(time.Now())
	for _, p := range all {
		if p.mark == s.mark && p.run != "" {
			s.name = p.run
		}
	}
	for _, p := range all {
		switch {
		case p.keeperOf != "" && p.keeperOf == s.name:
			bad = append(bad, p)
		case p.mark != s.mark:
		case !s.all && group != 0 && p.group != group && p.pid != s.wrapper:
			daemons++
		default:
			bad = append(bad, p)
		}
	}
	return bad, daemons
}

// sweep ends whatever is left.
func (s *session) sweep() {
	for range 200 {
		none := true
		for _, p := range processes(time.Now()) {
			if p.mark == s.mark {
				none = false
				_ = unix.Kill(p.pid, unix.SIGKILL)
			}
		}
		if none {
			return
		}
		time.Sleep(5 * time.Millisecond)
	}
}

// end ends the client and takes away what the session had.
func (s *session) end() {
	if s.client > 0 {
		_ = unix.Kill(s.client, unix.SIGKILL)
		_ = unix.Kill(s.client, unix.SIGCONT)
		var ws unix.WaitStatus
		for {
			if _, err := unix.Wait4(s.client, &ws, 0, nil); err != unix.EINTR {
				break
			}
		}
	}
	for _, fd := range []int{s.in, s.out} {
		if fd > 2 {
			_ = unix.Close(fd)
		}
	}
	if s.control != nil {
		_ = s.control.Close()
	}
	_ = os.Remove(s.file)
	_ = os.Remove(s.file + ".pid")
}

func newSession(dir string, seed, n uint64, kinds []kind) *session {
	r := rand.New(rand.NewPCG(seed, n))
	s := &session{
		rng: r, kind: kinds[n%uint64(len(kinds))],
		mark: fmt.Sprintf("%d-%d-%d", os.Getpid(), seed, n),
		file: filepath.Join(dir, strconv.FormatUint(n, 10)),
		in:   -1, out: -1,
		stop: 300 * time.Millisecond,
	}
	if r.IntN(16) == 0 {
		s.stop = later
	}
	s.tty = s.kind.tty
	s.note("session %d, stop %v", n, s.stop)
	return s
}
