//go:build unix

package e2e

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// The commands of the README do what it says, and each that starts a server is
// known here.
func TestReadmeCommands(t *testing.T) {
	readme, err := os.ReadFile(filepath.Join(moduleRoot, "README.md"))
	if err != nil {
		t.Fatal(err)
	}
	outcomes := []struct{ stdout, stderr string }{
		{`{"jsonrpc":"2.0","id":1,"result":{}}` + "\n", "starting...\n"},
		{"got hello\n", "stray\n"},
	}
	n := 0
	for block := range strings.SplitSeq(string(readme), "```sh\n") {
		command, _, ends := strings.Cut(block, "```\n")
		if !ends || !strings.HasPrefix(command, "echo ") {
			continue
		}
		if n == len(outcomes) {
			t.Fatalf("nothing is known of: %s", command)
		}
		stdout, stderr, status := run(t, Options{
			Bare: true, Command: []string{"sh", "-c", command},
			Env: []string{"PATH=" + filepath.Dir(wireguardrun) + string(os.PathListSeparator) + os.Getenv("PATH")},
		}, "")
		if want := outcomes[n]; stdout != want.stdout || !strings.Contains(stderr, want.stderr) || status != (Status{}) {
			t.Errorf("%s\nstandard output %q, standard error %q, %v", command, stdout, stderr, status)
		}
		n++
	}
	if n != len(outcomes) {
		t.Errorf("README.md has %d such commands, want %d", n, len(outcomes))
	}
}
