//go:build linux

package stress

import (
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

// wireguardrun is the path of the binary under test, which no other process on
// the machine has.
var wireguardrun string

// roleEnv makes the test binary play a role in place of running tests.
const roleEnv = "WGR_STRESS_ROLE"

func TestMain(m *testing.M) {
	if name := os.Getenv(roleEnv); name != "" {
		os.Unsetenv(roleEnv)
		os.Exit(roles[name]())
	}
	flag.Parse()
	os.Exit(runSuite(m))
}

func runSuite(m *testing.M) int {
	dir, err := os.MkdirTemp("", "wireguardrun-stress-")
	if err != nil {
		fmt.Fprintln(os.Stderr, "stress:", err)
		return 1
	}
	defer os.RemoveAll(dir)
	wireguardrun = filepath.Join(dir, "wireguardrun")
	cmd := exec.Command("go", "build", "-o", wireguardrun, "./cmd/wireguardrun")
	cmd.Dir = "../.."
	if out, err := cmd.CombinedOutput(); err != nil {
		fmt.Fprintf(os.Stderr, "stress: go build: %v\n%s", err, out)
		return 1
	}
	return m.Run()
}
