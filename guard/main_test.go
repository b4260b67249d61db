package guard

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"
)

// The tests of real descriptors run in child processes: this test binary,
// started again in a role. A claim in the test process itself would divert
// the test runner's own output.

const (
	roleVariable   = "WGR_ROLE"
	inputVariable  = "WGR_INPUT"  // JSON for the role
	reportVariable = "WGR_REPORT" // file for the role's JSON report
)

// roles are the parts a child can play, by name. Each returns its report.
var roles = map[string]func(input []byte) any{}

func TestMain(m *testing.M) {
	if name := os.Getenv(roleVariable); name != "" {
		os.Exit(playRole(name))
	}
	os.Exit(m.Run())
}

func playRole(name string) int {
	role := roles[name]
	input, report := os.Getenv(inputVariable), os.Getenv(reportVariable)
	for _, v := range []string{roleVariable, inputVariable, reportVariable} {
		_ = os.Unsetenv(v) // a grandchild is no role
	}
	if role == nil {
		return 64
	}
	out, err := json.Marshal(role([]byte(input)))
	if err != nil {
		return 65
	}
	if os.WriteFile(report, out, 0o600) != nil {
		return 66
	}
	return 0
}

// child is a role that is running, or about to.
type child struct {
	t      *testing.T
	cmd    *exec.Cmd
	report string
}

// newChild prepares a child in a role. The caller sets its standard streams.
func newChild(t *testing.T, role string, input any) *child {
	t.Helper()
	if roles[role] == nil {
		t.Fatalf("no role %q", role)
	}
	in, err := json.Marshal(input)
	if err != nil {
		t.Fatal(err)
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	c := &child{t: t, cmd: exec.Command(self), report: filepath.Join(t.TempDir(), "report")}
	c.cmd.Env = append(os.Environ(),
		roleVariable+"="+role, inputVariable+"="+string(in), reportVariable+"="+c.report,
		// A race-enabled binary otherwise sleeps a second before it exits.
		"GORACE=atexit_sleep_ms=0")
	c.cmd.Stderr = os.Stderr
	return c
}

// start starts the child and kills it when the test's time is up.
func (c *child) start() {
	c.t.Helper()
	if err := c.cmd.Start(); err != nil {
		c.t.Fatal(err)
	}
	kill := time.AfterFunc(timeLeft(c.t), func() { _ = c.cmd.Process.Kill() })
	c.t.Cleanup(func() { kill.Stop(); _ = c.cmd.Process.Kill() })
}

// wait waits for the child and decodes its report into v.
func (c *child) wait(v any) {
	c.t.Helper()
	if err := c.cmd.Wait(); err != nil {
		c.t.Fatalf("child: %v", err)
	}
	out, err := os.ReadFile(c.report)
	if err != nil {
		c.t.Fatal(err)
	}
	if err := json.Unmarshal(out, v); err != nil {
		c.t.Fatalf("report %q: %v", out, err)
	}
}

// timeLeft is the test's time, less a margin for its clean-up.
func timeLeft(t *testing.T) time.Duration {
	if deadline, ok := t.Deadline(); ok {
		return time.Until(deadline) * 9 / 10
	}
	return 10 * time.Minute
}

func errorText(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}
