package proc

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
	"testing"
)

func TestCheckDir(t *testing.T) {
	dir := tempDir(t)
	file := write(t, dir, "file", "", 0o644)
	for _, test := range []struct {
		path string
		want error
	}{
		{dir, nil},
		{".", nil},
		{filepath.Join(dir, "missing"), fs.ErrNotExist},
		{file, syscall.ENOTDIR},
	} {
		err := CheckDir(test.path)
		var at *os.PathError
		switch {
		case test.want == nil:
			if err != nil {
				t.Errorf("%s: %v", test.path, err)
			}
		case !errors.Is(err, test.want) || !errors.As(err, &at) || at.Op != "chdir" || at.Path != test.path:
			t.Errorf("%s: %v, want %v", test.path, err, test.want)
		}
	}
}
