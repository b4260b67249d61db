//go:build linux

package stress

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/creack/pty"
	"golang.org/x/sys/unix"
)

// wrapper is a program that starts another and stays.
type wrapper struct {
	name string
	argv []string
}

var wrappers = []wrapper{
	{"wireguardrun", nil},
	{"tini -s", []string{"tini", "-s", "--"}},
	{"tini -g -s", []string{"tini", "-g", "-s", "--"}},
	{"dumb-init", []string{"dumb-init"}},
	{"catatonit", []string{"catatonit", "--"}},
}

// check is one question to all wrappers. It returns what it saw, which is
// "yes" or why not.
type check struct {
	name string
	ask  func(*trial) string
}

// trial is one check on one wrapper.
type trial struct {
	argv []string // of the wrapper
	dir  string   // empty, for files
	mark string
	cmds []*exec.Cmd
}

// TestPeers puts wireguardrun beside other wrappers and prints a table. Only
// what wireguardrun fails is an error.
func TestPeers(t *testing.T) {
	header, rule := "\n| check |", "|---|"
	var present []wrapper
	for _, w := range wrappers {
		if w.argv == nil {
			w.argv = []string{wireguardrun, "--wire=fds", "--log-level=error", "--stop-timeout=1s", "--"}
		} else if os.Getenv("WGR_PEERS") == "" {
			continue // the others tell nothing about us; see the package's comment
		} else if path, err := exec.LookPath(w.argv[0]); err != nil {
			t.Logf("not installed, left out: %s", w.name)
			continue
		} else {
			w.argv[0] = path
		}
		present = append(present, w)
		header, rule = header+" "+w.name+" |", rule+"---|"
	}
	rows := make([]string, len(checks))
	var running sync.WaitGroup
	slots := make(chan bool, 4)
	dir := t.TempDir()
	for i, c := range checks {
		running.Go(func() {
			slots <- true
			defer func() { <-slots }()
			row := "| " + c.name + " |"
			for j, w := range present {
				tr := &trial{argv: w.argv, mark: fmt.Sprintf("%d-peer-%d-%d", os.Getpid(), i, j), dir: filepath.Join(dir, fmt.Sprintf("%d-%d", i, j))}
				if err := os.Mkdir(tr.dir, 0o700); err != nil {
					t.Error(err)
				}
				saw := c.ask(tr)
				tr.end()
				if saw != "yes" && w.name == "wireguardrun" {
					t.Errorf("%s: %s", c.name, saw)
				}
				row += " " + saw + " |"
			}
			rows[i] = row
		})
	}
	running.Wait()
	_, _ = os.Stdout.WriteString(header + "\n" + rule + "\n" + strings.Join(rows, "\n") + "\n")
}

var checks = []check{
	{"exit status 42 passes", func(t *trial) string {
		return want(t.run(t.shell("exit 42")), "exit status 42")
	}},
	{"death by a signal is seen: 128+n or the same signal", func(t *trial) string {
		saw := t.run(t.shell("kill -KILL $$"))
		return either(saw == "exit status 137" || saw == "signal: killed", saw)
	}},
	{"death by a signal is the same signal", func(t *trial) string {
		return want(t.run(t.shell("kill -KILL $$")), "signal: killed")
	}},
	{"TERM reaches the server", func(t *trial) string {
		c := t.shell(`trap 'echo got > got; exit' TERM; touch ready; while :; do sleep 0.05; done`)
		return t.signalled(c, unix.SIGTERM, "got")
	}},
	{"TERM reaches a grandchild", func(t *trial) string {
		c := t.shell(`sh -c 'trap "echo got > got; exit" TERM; touch ready; while :; do sleep 0.05; done' & trap : TERM; while ! test -e got; do sleep 0.05; done`)
		return t.signalled(c, unix.SIGTERM, "got")
	}},
	{"each of 5 signals comes exactly once", func(t *trial) string {
		c := t.shell(`trap 'echo 1 >> hits' USR1; trap 'exit' TERM; touch ready; while :; do sleep 0.02; done`)
		if why := t.start(c); why != "" {
			return why
		}
		for n := 1; n <= 5; n++ {
			_ = unix.Kill(c.Process.Pid, unix.SIGUSR1)
			if !until(func() bool { return t.hits() >= n }) {
				return fmt.Sprintf("%d of %d came", t.hits(), n)
			}
		}
		_ = unix.Kill(c.Process.Pid, unix.SIGTERM)
		if !t.ended(c) {
			return "does not end"
		}
		return want(fmt.Sprint(t.hits()), "5")
	}},
	{"a signal in the server's first instant is not lost", func(t *trial) string {
		lost := 0
		for range 20 {
			c := t.shell(`trap 'exit 9' USR2; echo ready >&2; n=0; while [ $n -lt 50 ]; do sleep 0.02; n=$((n+1)); done`)
			r, w, err := os.Pipe()
			if err != nil {
				return err.Error()
			}
			c.Stderr = w
			err = c.Start()
			_ = w.Close()
			if err == nil {
				_, err = r.Read(make([]byte, 6))
				_ = unix.Kill(c.Process.Pid, unix.SIGUSR2)
			}
			if !t.ended(c) || err != nil || c.ProcessState.ExitCode() != 9 {
				lost++
			}
			_ = r.Close()
		}
		return either(lost == 0, fmt.Sprintf("%d of 20 lost", lost))
	}},
	{"INT from the terminal's keyboard comes exactly once", keyboard},
	{"wrapper killed (KILL): nothing is left", func(t *trial) string {
		c := t.tree()
		if why := t.start(c); why != "" {
			return why
		}
		_ = c.Process.Kill()
		return t.empty()
	}},
	{"wrapper's group killed: nothing is left", func(t *trial) string {
		c := t.tree()
		if why := t.start(c); why != "" {
			return why
		}
		_ = unix.Kill(-c.Process.Pid, unix.SIGKILL)
		return t.empty()
	}},
	{"client killed, the pipes held by another: nothing is left", func(t *trial) string { return t.clientKilled(true, "sleep 300 & sleep 300") }},
	{"client killed: a server that ignores its input's end goes", func(t *trial) string { return t.clientKilled(false, "sleep 300") }},
	{"client killed: a grandchild in a session of its own goes", func(t *trial) string { return t.clientKilled(false, "setsid sleep 300 & exec cat") }},
	{"orphans are adopted and reaped", func(t *trial) string {
		c := t.shell(`(sh -c 'sleep 0.1; echo $$ > orphan; exec sleep 0.1' &); touch ready; while ! test -e done; do sleep 0.05; done`)
		if why := t.start(c); why != "" {
			return why
		}
		defer t.touch("done")
		if !until(func() bool { return t.number("orphan") > 0 }) {
			return "no orphan"
		}
		p, _, ok := stat(t.number("orphan"))
		if ok && p.parent != c.Process.Pid {
			return "not adopted"
		}
		if !until(func() bool { _, _, ok := stat(t.number("orphan")); return !ok }) {
			return "stays as a zombie"
		}
		return "yes"
	}},
	{"stop (TSTP) and continue reach the server", func(t *trial) string {
		c := t.shell(`echo $$ > pid; touch ready; while ! test -e done; do sleep 0.05; done`)
		if why := t.start(c); why != "" {
			return why
		}
		defer t.touch("done")
		pid := t.number("pid")
		time.Sleep(100 * time.Millisecond) // the first instant is asked for below
		_ = unix.Kill(c.Process.Pid, unix.SIGTSTP)
		if !until(func() bool { _, state, _ := stat(pid); return state == 'T' }) {
			return "is not stopped"
		}
		_ = unix.Kill(c.Process.Pid, unix.SIGCONT)
		if !until(func() bool { _, state, _ := stat(pid); return state != 'T' }) {
			return "does not go on"
		}
		return "yes"
	}},
	{"end of stdin does not kill: a late answer arrives", func(t *trial) string {
		c := t.shell("cat >/dev/null; sleep 3; echo answer" + toWire)
		c.Stdin = strings.NewReader("ask\n")
		out, err := c.Output()
		return either(err == nil && strings.Contains(string(out), "answer"), fmt.Sprintf("%q, %v", out, err))
	}},
	{"a stray print stays off the wire", func(t *trial) string {
		c := t.shell("echo stray; echo frame" + toWire)
		out, err := c.Output()
		return either(err == nil && string(out) == "frame\n", "the client gets "+strconv.Quote(string(out)))
	}},
	{"HUP that was ignored stays ignored", func(t *trial) string {
		inner := append(append([]string{}, t.argv...), "sh", "-c", "touch ready; while ! test -e done; do sleep 0.05; done; touch lived")
		c := t.command(append([]string{"sh", "-c", `trap '' HUP; exec "$@"`, "sh"}, inner...)...)
		if why := t.start(c); why != "" {
			return why
		}
		_ = unix.Kill(c.Process.Pid, unix.SIGHUP)
		time.Sleep(100 * time.Millisecond)
		t.touch("done")
		return either(t.ended(c) && t.exists("lived"), "killed by HUP")
	}},
	{"a daemon does not delay the exit, and lives", func(t *trial) string {
		c := t.shell(daemon + "; exit 0")
		if saw := t.run(c); saw != "exit status 0" {
			return saw // delayed, it does not end: the daemon sleeps for long
		}
		return either(len(t.left()) > 0, "the daemon is killed")
	}},
	{"a daemon that holds the wire does not delay the exit", func(t *trial) string {
		c := t.shell(daemon + "; exit 7")
		c.Stdin = nil
		return want(t.run(c), "exit status 7")
	}},
	{"a command that is not found gives 127", func(t *trial) string {
		return want(t.run(t.command(append(append([]string{}, t.argv...), "./no-such-command")...)), "exit status 127")
	}},
	{"a file that is not executable gives 126", func(t *trial) string {
		t.touch("file")
		return want(t.run(t.command(append(append([]string{}, t.argv...), "./file")...)), "exit status 126")
	}},
}

// toWire appended to a command of a shell sends what it writes to the client.
const toWire = ` >&"${WIREGUARDRUN_OUT:-1}"`

// daemon starts one and waits until it has left the shell's group, where it
// would be a leftover of the server.
const daemon = `setsid sh -c 'touch away; exec sleep 300' & while ! test -e away; do sleep 0.02; done`

// keyboard starts the wrapper as a shell starts its foreground job.
func keyboard(t *trial) string {
	master, slave, err := pty.Open()
	if err != nil {
		return err.Error()
	}
	defer master.Close()
	defer slave.Close()
	c := t.shell(`trap 'echo 1 >> hits' INT; touch ready; while ! test -e done; do sleep 0.02; done`)
	c.Stdin, c.Stdout, c.Stderr = slave, slave, slave
	c.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
	if why := t.start(c); why != "" {
		return why
	}
	go func() { _, _ = io.Copy(io.Discard, master) }()
	time.Sleep(100 * time.Millisecond)
	if _, err := master.Write([]byte{3}); err != nil {
		return err.Error()
	}
	until(func() bool { return t.hits() > 0 })
	time.Sleep(300 * time.Millisecond) // a second one would be here by then
	t.touch("done")
	if !t.ended(c) {
		return "does not end"
	}
	return want(fmt.Sprint(t.hits())+" times", "1 times")
}

// clientKilled kills the wrapper's parent. If held, others keep the pipes.
func (t *trial) clientKilled(held bool, script string) string {
	var in, out [2]int
	if unix.Pipe2(in[:], unix.O_CLOEXEC) != nil || unix.Pipe2(out[:], unix.O_CLOEXEC) != nil {
		return "no pipes"
	}
	files := map[string]*os.File{}
	for name, fd := range map[string]int{"in": in[0], "clientIn": in[1], "clientOut": out[0], "out": out[1]} {
		files[name] = os.NewFile(uintptr(fd), name)
		defer files[name].Close()
	}
	// The shell is the client: it has the other ends as 5 and 6.
	c := t.command(append([]string{"sh", "-c", `"$@" 5>&- 6<&- & wait`, "sh"}, append(append([]string{}, t.argv...),
		"sh", "-c", "exec 0<&${WIREGUARDRUN_IN:-0}; touch ready; "+script)...)...)
	c.Stdin, c.Stdout = nil, nil
	c.ExtraFiles = []*os.File{files["in"], files["out"], files["clientIn"], files["clientOut"]}
	c.Args[2] = `"$@" <&3 >&4 3<&- 4>&- 5>&- 6<&- & exec 3<&- 4>&-; wait`
	if why := t.start(c); why != "" {
		return why
	}
	_ = files["in"].Close()
	_ = files["out"].Close()
	if !held {
		_ = files["clientIn"].Close()
		_ = files["clientOut"].Close()
	}
	time.Sleep(100 * time.Millisecond)
	_ = c.Process.Kill()
	return t.empty()
}

// tree is a server with one child in its group and one in a session of its own.
func (t *trial) tree() *exec.Cmd {
	c := t.shell("sleep 300 & setsid sh -c 'touch ready; exec sleep 300' & wait")
	c.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	return c
}

func (t *trial) command(argv ...string) *exec.Cmd {
	c := exec.Command(argv[0], argv[1:]...)
	c.Dir = t.dir
	c.Env = append(os.Environ(), markEnv+"="+t.mark)
	c.WaitDelay = time.Second
	t.cmds = append(t.cmds, c)
	return c
}

// shell is the wrapper with a shell as its server.
func (t *trial) shell(script string) *exec.Cmd {
	return t.command(append(append([]string{}, t.argv...), "sh", "-c", script)...)
}

// run runs c to its end and returns how it has ended.
func (t *trial) run(c *exec.Cmd) string {
	if err := c.Start(); err != nil {
		return err.Error()
	}
	if !t.ended(c) {
		return "does not end"
	}
	return c.ProcessState.String()
}

// start starts c and waits for the file "ready".
func (t *trial) start(c *exec.Cmd) (why string) {
	if err := c.Start(); err != nil {
		return err.Error()
	}
	if !until(func() bool { return t.exists("ready") }) {
		return "does not start"
	}
	return ""
}

// ended waits for the end of c.
func (t *trial) ended(c *exec.Cmd) bool {
	done := make(chan bool)
	go func() {
		_ = c.Wait()
		close(done)
	}()
	select {
	case <-done:
		return true
	case <-time.After(10 * time.Second):
		_ = c.Process.Kill()
		<-done
		return false
	}
}

func (t *trial) signalled(c *exec.Cmd, sig unix.Signal, file string) string {
	if why := t.start(c); why != "" {
		return why
	}
	_ = unix.Kill(c.Process.Pid, sig)
	return either(until(func() bool { return t.exists(file) }), "it does not")
}

func (t *trial) left() (names []string) {
	for _, p := range processes(time.Now()) {
		if p.mark == t.mark {
			names = append(names, p.name)
		}
	}
	return names
}

// empty waits until nothing of the trial lives. The rules of wireguardrun give
// a server up to 3 s here.
func (t *trial) empty() string {
	for limit := time.Now().Add(8 * time.Second); ; time.Sleep(30 * time.Millisecond) {
		left := t.left()
		if len(left) == 0 {
			return "yes"
		}
		if time.Now().After(limit) {
			return fmt.Sprintf("%d left", len(left))
		}
	}
}

// end ends all that the trial has started.
func (t *trial) end() {
	for limit := time.Now().Add(2 * time.Second); time.Now().Before(limit); time.Sleep(5 * time.Millisecond) {
		none := true
		for _, p := range processes(time.Now()) {
			if p.mark == t.mark {
				none = false
				_ = unix.Kill(p.pid, unix.SIGKILL)
			}
		}
		if none {
			break
		}
	}
	for _, c := range t.cmds {
		if c.Process != nil && c.ProcessState == nil {
			_ = c.Wait()
		}
	}
}

func (t *trial) path(name string) string { return filepath.Join(t.dir, name) }

func (t *trial) touch(name string) { _ = os.WriteFile(t.path(name), nil, 0o600) }

func (t *trial) exists(name string) bool {
	_, err := os.Stat(t.path(name))
	return err == nil
}

func (t *trial) hits() int {
	data, _ := os.ReadFile(t.path("hits"))
	return bytes.Count(data, []byte{'\n'})
}

func (t *trial) number(name string) int {
	f, err := os.Open(t.path(name))
	if err != nil {
		return 0
	}
	defer f.Close()
	line, _ := bufio.NewReader(f).ReadString('\n')
	n, _ := strconv.Atoi(strings.TrimSpace(line))
	return n
}

// until waits for what another process does.
func until(done func() bool) bool {
	for limit := time.Now().Add(3 * time.Second); time.Now().Before(limit); time.Sleep(5 * time.Millisecond) {
		if done() {
			return true
		}
	}
	return done()
}

func either(ok bool, not string) string {
	if ok {
		return "yes"
	}
	return "no: " + strings.ReplaceAll(not, "|", "/")
}

func want(saw, wanted string) string { return either(saw == wanted, saw) }
