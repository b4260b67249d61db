//go:build unix

package proc

import (
	"os"
	"os/exec"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/wireguardrun/wireguardrun/internal/pipes"
)

func init() {
	if os.Args[0] == KeeperStage {
		RunKeeper(os.Args)
		os.Exit(0)
	}
}

// marked starts a child that copies, with a mark of its own.
func marked(t *testing.T) (*running, Tree) {
	t.Helper()
	run := NewRun()
	c := asRole(t, "copy")
	c.Env = append(c.Env, MarkOf(run, nil))
	r := launch(t, c)
	t.Cleanup(func() { _ = unix.Kill(-r.Pid(), unix.SIGKILL) })
	return r, NewTree(r.Process, run)
}

func wantStatus(t *testing.T, p *Process, want Status) {
	t.Helper()
	if got, err := p.Wait(); got != want || err != nil {
		t.Errorf("%+v, %v, want %+v", got, err, want)
	}
}

func keep(t *testing.T, tree Tree) *Keeper {
	t.Helper()
	k, err := StartKeeper(tree.run)
	if err != nil {
		t.Fatal(err)
	}
	k.Guard(tree)
	return k
}

// The end of the pipe without a word is our death.
func TestKeeperKills(t *testing.T) {
	r, tree := marked(t)
	k := keep(t, tree)
	if err := pipes.Close(k.line); err != nil {
		t.Fatal(err)
	}
	wantStatus(t, r.Process, Status{Signal: int(unix.SIGKILL)})
	k.Wait()
}

// One that is dismissed, and even before it has begun, kills nobody.
func TestKeeperDismissed(t *testing.T) {
	r, tree := marked(t)
	for range 5 {
		k := keep(t, tree)
		k.Dismiss()
		k.Wait()
		if err := unix.Kill(k.Pid(), 0); err != unix.ESRCH {
			t.Errorf("it is still there: %v", err)
		}
	}
	if out, status := r.end(); out != "" || status != (Status{}) {
		t.Errorf("%q, %+v", out, status)
	}
}

// One that is to kill later ends as soon as there is nobody.
func TestKeeperKillLater(t *testing.T) {
	r, tree := marked(t)
	k := keep(t, tree)
	k.KillLater()
	if out, status := r.end(); out != "" || status != (Status{}) {
		t.Errorf("%q, %+v", out, status)
	}
	k.Wait()
}

// What is no order of ours must not become the kill of everything.
func TestKeeperArguments(t *testing.T) {
	for _, argv := range [][]string{
		{KeeperStage}, {KeeperStage, "5"}, {KeeperStage, "", "run"}, {KeeperStage, "x", "run"},
		{KeeperStage, "0", "run"}, {KeeperStage, "1", "run"}, {KeeperStage, "-1", "run"}, {KeeperStage, "-7", "run"},
	} {
		cmd := exec.CommandContext(t.Context(), self(t))
		cmd.Args = argv
		cmd.Env = append(os.Environ(), "GORACE=atexit_sleep_ms=0")
		cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
		if out, err := cmd.CombinedOutput(); len(out) > 0 || err != nil {
			t.Errorf("%q: %s, %v", argv, out, err)
		}
	}
}

func TestNewRun(t *testing.T) {
	outer := NewRun()
	mark := MarkOf(outer, nil)
	if mark != EnvRun+"="+outer || len(outer) != 16 {
		t.Errorf("run %q, variable %q", outer, mark)
	}
	inner := NewRun()
	both := MarkOf(inner, []string{mark})
	if want := mark + ":" + inner; both != want || inner == outer {
		t.Errorf("%q within %q: %q, want %q", inner, outer, both, want)
	}
	if mark := MarkOf(inner, []string{EnvRun + "="}); mark != EnvRun+"="+inner {
		t.Errorf("within nothing: %q", mark)
	}
}
