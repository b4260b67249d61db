package proc

import (
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/wireguardrun/wireguardrun/internal/pipes"
)

func TestExitCode(t *testing.T) {
	for _, code := range []int{0, 1, 42, 125, 255} {
		_, status := launch(t, asRole(t, "exit", fmt.Sprint(code))).end()
		if status != (Status{Code: code}) {
			t.Errorf("%d: %+v", code, status)
		}
	}
}

func TestArguments(t *testing.T) {
	args := []string{"", "two words", `"quoted"`, `back\slash\`, "*", "$HOME", "ü"}
	got, status := launch(t, asRole(t, "arguments", args...)).end()
	if want := fmt.Sprintf("%q", args); got != want || status != (Status{}) {
		t.Errorf("%s, %+v, want %s", got, status, want)
	}
}

func TestStandardStreams(t *testing.T) {
	r := launch(t, asRole(t, "copy"))
	if _, err := io.WriteString(r.in, "there and back"); err != nil {
		t.Fatal(err)
	}
	_ = r.in.Close()
	stderr, err := io.ReadAll(r.stderr)
	if err != nil || string(stderr) != "copied" {
		t.Errorf("standard error is %q, %v", stderr, err)
	}
	if got, status := r.end(); got != "there and back" || status != (Status{}) {
		t.Errorf("%q, %+v", got, status)
	}
}

func TestDirAndEnvironment(t *testing.T) {
	c := asRole(t, "surroundings", "PROC_A", "PROC_B", "PROC_C")
	c.Dir = tempDir(t)
	c.Env = append(c.Env, "PROC_A=from Env", "PROC_B=from Env")
	c.MoreEnv = func(func(int) pipes.Handle) []string { return []string{"PROC_B=from MoreEnv"} }
	got, status := launch(t, c).end()
	want := c.Dir + "\nPROC_A=from Env true\nPROC_B=from MoreEnv true\nPROC_C= false"
	if got != want || status != (Status{}) {
		t.Errorf("%q, %+v, want %q", got, status, want)
	}
}

func TestPid(t *testing.T) {
	r := launch(t, asRole(t, "copy"))
	if r.Pid() <= 0 || r.Pid() == os.Getpid() {
		t.Errorf("process id %d", r.Pid())
	}
	r.end()
}

func TestStartOfWhatIsMissing(t *testing.T) {
	path := tempDir(t) + "/missing"
	p, err := Start(Command{Path: path, Args: []string{path}, Env: os.Environ(), Terminal: pipes.None})
	if p != nil || err == nil || !strings.Contains(err.Error(), "missing") {
		t.Errorf("%v, %v", p, err)
	}
}

func TestFreePair(t *testing.T) {
	for _, test := range []struct {
		name, env, want string
	}{
		{"nothing named", "", "3 4"},
		{"jobserver", "MAKEFLAGS=w -j4 --jobserver-auth=3,4", "5 6"},
		{"older jobserver", "MAKEFLAGS= --jobserver-fds=3,4 -j", "5 6"},
		{"jobserver on a FIFO", "MAKEFLAGS=-j --jobserver-auth=fifo:/tmp/3,4", "3 4"},
		{"jobserver that is off", "MAKEFLAGS=-j --jobserver-auth=-2,-2", "3 4"},
		{"jobserver above", "MAKEFLAGS=--jobserver-auth=5,6", "3 4"},
		{"variables in MAKEFLAGS", "MAKEFLAGS=w -- N=3,4", "3 4"},
		{"channel of Node", "NODE_CHANNEL_FD=3", "5 6"},
		{"channel of Node on the second", "NODE_CHANNEL_FD=4", "5 6"},
		{"channel of Node, no number", "NODE_CHANNEL_FD=x", "3 4"},
		{"two sockets", "LISTEN_FDS=2", "5 6"},
		{"three sockets", "LISTEN_FDS=3", "7 8"},
		{"no sockets", "LISTEN_FDS=0", "3 4"},
		{"absurd sockets", "LISTEN_FDS=-1", "3 4"},
	} {
		t.Run(test.name, func(t *testing.T) {
			cmd := viaExec(t, "free pair")
			cmd.Env = append(withoutNumbers(cmd.Env), test.env)
			if got, err := cmd.Output(); err != nil || string(got) != test.want {
				t.Errorf("%s, %v, want %s", got, err, test.want)
			}
		})
	}
}

// withoutNumbers removes from env, which it changes, what gives descriptor
// numbers a meaning.
func withoutNumbers(env []string) []string {
	return slices.DeleteFunc(env, func(kv string) bool {
		return slices.Contains([]string{"MAKEFLAGS", "NODE_CHANNEL_FD", "LISTEN_FDS"}, nameOf(kv))
	})
}
