package proc

import (
	"errors"
	"os"
	"syscall"
)

// ErrNotFound is returned by Look for a name that is nowhere in PATH.
var ErrNotFound = errors.New("not found in PATH")

// Look resolves name as the system does for a process with the directory dir
// and the environment env: a name with a separator is a path, relative to dir;
// any other is looked for in env's PATH. A file that is there but can't be
// executed is told only when no other was found.
func Look(name, dir string, env []string) (string, error) { return look(name, dir, env) }

// CheckDir returns an *os.PathError with Op "chdir" when dir can't be a working
// directory. A start reports that like a program which is missing.
func CheckDir(dir string) error {
	st, err := os.Stat(dir)
	var at *os.PathError
	switch {
	case errors.As(err, &at):
		err = at.Err
	case err == nil && !st.IsDir():
		err = syscall.ENOTDIR
	case err == nil:
		err = mayEnter(dir)
	}
	if err != nil {
		return &os.PathError{Op: "chdir", Path: dir, Err: err}
	}
	return nil
}
