//go:build unix

package pipes

import (
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"
)

func openPath(t *testing.T, path string, flags int) Handle {
	t.Helper()
	f, err := os.OpenFile(path, flags, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = f.Close() })
	return Handle(f.Fd())
}

// What is written to either opening arrives in the same place.
func TestSharesFileWithOtherOpenings(t *testing.T) {
	file, fifo := filepath.Join(t.TempDir(), "file"), filepath.Join(t.TempDir(), "fifo")
	if err := unix.Mkfifo(fifo, 0o600); err != nil {
		t.Fatal(err)
	}
	terminal := newTerminal(t)
	again := opened(t, func() (Handle, error) { return Duplicate(terminal) })
	for _, test := range []struct {
		name string
		a, b Handle
		want bool
	}{
		{"regular file", openPath(t, file, os.O_WRONLY|os.O_CREATE), openPath(t, file, os.O_WRONLY|os.O_APPEND), true},
		{"FIFO", openPath(t, fifo, os.O_RDWR), openPath(t, fifo, os.O_WRONLY), true},
		{"file and FIFO", openPath(t, file, os.O_WRONLY), openPath(t, fifo, os.O_RDWR), false},
		{"terminal, where a person reads both", terminal, again, false},
	} {
		if got := SharesFile(test.a, test.b); got != test.want {
			t.Errorf("%s: %t, want %t", test.name, got, test.want)
		}
	}
}
