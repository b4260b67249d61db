//go:build unix

package pipes

import (
	"fmt"
	"os"
	"os/exec"
	"testing"
)

// roles are what the test binary does instead of testing when a test starts it
// again with the role's name in the environment: what needs standard
// descriptors, limits or a terminal of its own. What a role prints is what did
// not hold.
var roles = map[string]func() error{}

const roleVariable = "PIPES_TEST_ROLE"

func TestMain(m *testing.M) {
	if name := os.Getenv(roleVariable); name != "" {
		_ = os.Unsetenv(roleVariable)
		report := os.NewFile(reportDescriptor, "report")
		if err := roles[name](); err != nil {
			_, _ = fmt.Fprintln(report, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// reportDescriptor is where a role reports, whatever its standard descriptors
// are.
const reportDescriptor = 9

// play runs a role with the shell's redirections.
func play(t *testing.T, role, redirections string, prepare func(*exec.Cmd)) {
	t.Helper()
	if roles[role] == nil {
		t.Fatalf("no role %q", role)
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = r.Close() }()
	cmd := exec.CommandContext(t.Context(), "/bin/sh", "-c", `exec "$0" 9>&3 3>&- `+redirections, self)
	cmd.Env = append(os.Environ(), roleVariable+"="+role, "GORACE=atexit_sleep_ms=0")
	cmd.ExtraFiles = []*os.File{w}
	if prepare != nil {
		prepare(cmd)
	}
	err = cmd.Start()
	_ = w.Close()
	if err != nil {
		t.Fatal(err)
	}
	report := make([]byte, 1<<10)
	n, _ := r.Read(report)
	if err := cmd.Wait(); err != nil || n > 0 {
		t.Errorf("%v: %s", err, report[:n])
	}
}
