package e2e

import (
	"os"
	"os/exec"
	"testing"
)

// needs returns the path of a program that not every machine has. Without it
// the test is skipped, except in CI, where a skipped test is a lost test.
func needs(t *testing.T, program string) string {
	t.Helper()
	path, err := exec.LookPath(program)
	if err != nil {
		cannotRun(t, "%s is needed: %v", program, err)
	}
	return path
}

// cannotRun skips the test with the reason, or fails it in CI.
func cannotRun(t *testing.T, format string, args ...any) {
	t.Helper()
	if os.Getenv("CI") != "" {
		t.Fatalf("in CI every test must run: "+format, args...)
	}
	usage.Lock()
	usage.skipped = true
	usage.Unlock()
	t.Skipf(format, args...)
}
