package stray

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/wireguardrun/wireguardrun/internal/pipes"
)

// roles are what the test binary does instead of testing when it is started
// again by a test, with the role's name in the environment.
var roles = map[string]func() error{
	"flood":       flood,
	"dead-stderr": deadStderr,
}

const roleEnv = "STRAY_TEST_ROLE"

func TestMain(m *testing.M) {
	if role, ok := os.LookupEnv(roleEnv); ok {
		os.Unsetenv(roleEnv)
		if err := roles[role](); err != nil {
			fmt.Println(err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

func roleCommand(t *testing.T, role string) *exec.Cmd {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), self)
	cmd.Env = append(os.Environ(), roleEnv+"="+role)
	cmd.WaitDelay = time.Minute
	return cmd
}

// soon is when a test that waits gives up.
func soon(t *testing.T) time.Time {
	if d, ok := t.Deadline(); ok {
		return d.Add(-5 * time.Second)
	}
	return time.Now().Add(time.Minute)
}

// now is a deadline that leaves no time to wait.
var now = time.Time{}

// tempDir is t.TempDir without os.RemoveAll, which older versions of Wine lack.
func tempDir(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "stray")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		found, _ := filepath.Glob(filepath.Join(dir, "*"))
		for _, path := range append(found, dir) {
			if err := os.Remove(path); err != nil {
				t.Error(err)
			}
		}
	})
	return dir
}

func newPipe(t *testing.T) (r, w pipes.Handle) {
	t.Helper()
	r, w, err := pipes.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	return r, w
}

func closeAll(t *testing.T, handles ...pipes.Handle) {
	t.Helper()
	for _, h := range handles {
		if err := pipes.Close(h); err != nil {
			t.Error(err)
		}
	}
}

// readAll reads r to its end in a goroutine, closes it and sends what came.
func readAll(t *testing.T, r pipes.Handle) <-chan string {
	t.Helper()
	f := os.NewFile(uintptr(r), "pipe")
	out := make(chan string, 1)
	go func() {
		defer f.Close()
		var b bytes.Buffer
		if _, err := b.ReadFrom(f); err != nil {
			t.Error(err)
		}
		out <- b.String()
	}()
	return out
}

// numbered returns lines that begin with their number, of about size bytes
// in all.
func numbered(size int) string {
	var b strings.Builder
	for i := 0; b.Len() < size; i++ {
		fmt.Fprintf(&b, "%d %s\n", i, strings.Repeat(".", i%90))
	}
	return b.String()
}
