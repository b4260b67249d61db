//go:build unix

package stray

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

func TestFileRefusesFIFO(t *testing.T) {
	path := tempDir(t) + "/fifo"
	if err := unix.Mkfifo(path, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := NewFile(path, 0, Options{}); err == nil || !strings.Contains(err.Error(), path) {
		t.Errorf("got %v, want an error that names the path", err)
	}
}

// A link is followed, so that rotation renames the file and not the link.
func TestFileBehindLink(t *testing.T) {
	dir := tempDir(t)
	file, link := filepath.Join(dir, "file"), filepath.Join(dir, "link")
	if err := os.WriteFile(file, []byte("before.\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(file, link); err != nil {
		t.Fatal(err)
	}
	s := newFile(t, link, 10, Options{})
	s.Put("stdout", []byte("after.\n"))
	closeSink(t, s)
	if got, got1 := content(t, link), content(t, file+".1"); got != "after.\n" || got1 != "before.\n" {
		t.Errorf("files hold %q and before it %q", got, got1)
	}
}
