package proc

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/wireguardrun/wireguardrun/internal/pipes"
)

// copier starts a process in a group or session of its own, and returns what
// ends and waits for it.
func copier(t *testing.T, env []string, attr *syscall.SysProcAttr) (pid int, end func()) {
	t.Helper()
	cmd := viaExec(t, "copy")
	cmd.Env = append(cmd.Env, env...)
	cmd.Stderr = nil
	cmd.SysProcAttr = attr
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	ended := false
	end = func() {
		if !ended {
			ended = true
			_ = in.Close()
			_ = cmd.Wait()
		}
	}
	t.Cleanup(end)
	return cmd.Process.Pid, end
}

// Who has left the group is known by the mark, or because it is below us.
func TestTreeMembers(t *testing.T) {
	r, tree := marked(t)
	if !tree.GroupAlive() || !tree.Alive() {
		t.Error("the group is not alive")
	}
	strayPid, endStray := copier(t, []string{EnvRun + "=x:" + tree.run}, &syscall.SysProcAttr{Setsid: true})
	barePid, endBare := copier(t, nil, &syscall.SysProcAttr{Setsid: true})
	memberPid, endMember := copier(t, []string{EnvRun + "=" + tree.run}, &syscall.SysProcAttr{Setpgid: true, Pgid: r.Pid()})
	ownPid, endOwn := copier(t, nil, nil) // of a script that we were, maybe
	k := keep(t, tree)
	got := slices.Collect(tree.leftGroup())
	for pid, want := range map[int]bool{
		strayPid: true, barePid: true, memberPid: false, r.Pid(): false,
		ownPid: false, k.Pid(): false, os.Getpid(): false, os.Getppid(): false,
	} {
		if slices.Contains(got, pid) != want {
			t.Errorf("%d in %v, want %v", pid, got, want)
		}
	}
	// As if they had been in the group a moment ago.
	were := []int{r.Pid(), memberPid, strayPid, barePid, ownPid}
	if got := tree.goneFrom(were, nil); !slices.Equal(got, []int{strayPid}) {
		t.Errorf("%v have left, want %d", got, strayPid)
	}
	if got := tree.goneFrom(were, got); len(got) > 0 {
		t.Errorf("%v have left and are known", got)
	}
	k.Dismiss()
	k.Wait()
	endStray()
	endBare()
	if _, status := r.end(); status != (Status{}) {
		t.Errorf("%+v", status)
	}
	if !tree.GroupAlive() {
		t.Error("the group ended with its leader")
	}
	endMember()
	if tree.GroupAlive() || tree.Alive() { // although our own group is
		t.Errorf("it is alive: group %v, beside %v", tree.GroupAlive(), slices.Collect(tree.leftGroup()))
	}
	endOwn()
}

// Who has ended and was not waited for is not alive.
func TestTreeZombie(t *testing.T) {
	cmd := exec.Command("true")
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	var info unix.Siginfo
	if err := unix.Waitid(unix.P_PID, cmd.Process.Pid, &info, unix.WEXITED|unix.WNOWAIT, nil); err != nil {
		t.Fatal(err)
	}
	if (Tree{group: cmd.Process.Pid, run: "none"}).GroupAlive() {
		t.Error("a group of a zombie is alive")
	}
	if err := cmd.Wait(); err != nil {
		t.Error(err)
	}
}

func init() {
	const name = "copy beside"
	if os.Getenv(roleVariable) == name {
		runtime.LockOSThread() // main goes on in the first thread
	}
	// Copies in a thread that is not the first, which has ended.
	roles[name] = func(args []string) int {
		go func() { os.Exit(roles["copy"](args)) }()
		_, _, err := unix.Syscall(unix.SYS_EXIT, 0, 0, 0)
		fmt.Fprint(os.Stderr, err)
		return 1
	}
}

// Who has lost only its first thread is alive.
func TestTreeThreads(t *testing.T) {
	c := asRole(t, "copy beside")
	r := launch(t, c)
	tree := Tree{group: r.Pid(), run: "none"}
	if _, err := io.WriteString(r.in, "x"); err != nil {
		t.Fatal(err)
	}
	if _, err := r.out.Read(make([]byte, 1)); err != nil {
		t.Fatal(err)
	}
	for end := time.Now().Add(10 * time.Second); ; time.Sleep(time.Millisecond) {
		stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", r.Pid()))
		if err != nil || time.Now().After(end) {
			t.Fatalf("its first thread does not end: %s, %v", stat, err)
		}
		if bytes.HasPrefix(behindName(stat), []byte(" Z")) {
			break
		}
	}
	if !tree.GroupAlive() || !tree.GroupHolds(ObjectOf(pipes.Handle(r.in.Fd()))) {
		t.Errorf("alive %v, holds %v", tree.GroupAlive(), tree.GroupHolds(ObjectOf(pipes.Handle(r.in.Fd()))))
	}
	if out, status := r.end(); out != "" || status != (Status{}) {
		t.Errorf("%q, %+v", out, status)
	}
	if tree.GroupAlive() {
		t.Error("it has ended")
	}
}

func TestGroupHolds(t *testing.T) {
	r, tree := marked(t)
	other, _, err := pipes.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	in, out := ObjectOf(pipes.Handle(r.in.Fd())), ObjectOf(pipes.Handle(r.out.Fd()))
	if !tree.GroupHolds(in) || !tree.GroupHolds(ObjectOf(other), out) {
		t.Error("its pipes are not seen")
	}
	if tree.GroupHolds(ObjectOf(other)) {
		t.Error("it has a pipe of ours")
	}
	if _, status := r.end(); status != (Status{}) {
		t.Errorf("%+v", status)
	}
	if tree.GroupHolds(in, out) {
		t.Error("nobody has them any more")
	}
}

// Who has closed all that it had holds nothing.
func TestGroupHoldsNothing(t *testing.T) {
	// What the tests were started with is not for their children.
	for fd := 3; fd < 1024; fd++ {
		unix.CloseOnExec(fd)
	}
	cmd := exec.Command("sh", "-c", "exec sleep 1000 <&- >&- 2>&-")
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = cmd.Process.Kill(); _ = cmd.Wait() }()
	tree := Tree{group: cmd.Process.Pid, run: "none"}
	for end := time.Now().Add(10 * time.Second); ; time.Sleep(time.Millisecond) {
		open, err := os.ReadDir(fmt.Sprintf("/proc/%d/fd", cmd.Process.Pid))
		if err != nil || time.Now().After(end) {
			t.Fatalf("it does not close what it has: %v, %v", open, err)
		}
		if len(open) == 0 {
			break
		}
	}
	if !tree.GroupAlive() || tree.GroupHolds(ObjectOf(pipes.Handle(in.(*os.File).Fd()))) {
		t.Error("it holds a pipe that it has closed")
	}
}

// A run is in the list by its whole name.
func TestIsOf(t *testing.T) {
	for value, want := range map[string]bool{
		"a": true, "a:b": true, "b:a": true, "c:a:b": true,
		"": false, "b": false, "ab": false, "b:ab": false, "aa:b": false,
	} {
		if got := namesRun(value, "a"); got != want {
			t.Errorf("namesRun(%q, a) is %v", value, got)
		}
	}
}

// Nobody is waited for who has no environment, or none that we may see.
func TestExecutes(t *testing.T) {
	c := asRole(t, "copy")
	cmd := exec.CommandContext(t.Context(), "cat")
	cmd.Env = []string{}
	in, err := cmd.StdinPipe() // at whose end it ends
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = in.Close(); _ = cmd.Wait() }()
	r := launch(t, c)
	// Both have replaced their program for good when they have copied a byte.
	for _, copies := range []struct {
		in  io.Writer
		out io.Reader
	}{{in, out}, {r.in, r.out}} {
		_, err := io.WriteString(copies.in, "x")
		if _, readErr := copies.out.Read(make([]byte, 1)); err != nil || readErr != nil {
			t.Fatal(err, readErr)
		}
	}
	for name, pid := range map[string]int{
		"ours": os.Getpid(), "a child": r.Pid(), "one without an environment": cmd.Process.Pid,
		"process 1": 1, "a kernel thread, or somebody's": 2, "nobody": 1 << 30,
	} {
		if inExec(pid) {
			t.Errorf("%s is said to replace its program", name)
		}
	}
	r.end()
}
