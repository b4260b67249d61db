//go:build unix

package proc

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"
)

func look(name, dir string, env []string) (string, error) {
	if strings.Contains(name, "/") {
		return name, executable(inDir(name, dir))
	}
	denied := error(nil)
	for _, d := range filepath.SplitList(Getenv(env, "PATH")) {
		if d == "" {
			d = "." // POSIX: an empty element is the current directory
		}
		candidate := d + "/" + name
		err := executable(inDir(candidate, dir))
		if err == nil {
			return candidate, nil
		}
		if denied == nil && errors.Is(err, fs.ErrPermission) {
			denied = err
		}
	}
	if denied != nil {
		return "", denied
	}
	return "", ErrNotFound
}

func inDir(path, dir string) string {
	if filepath.IsAbs(path) {
		return path
	}
	return filepath.Join(dir, path)
}

func executable(path string) error {
	st, err := os.Stat(path)
	if err != nil {
		return err
	}
	if st.IsDir() {
		return &os.PathError{Op: "exec", Path: path, Err: unix.EACCES}
	}
	if err := unix.Faccessat(unix.AT_FDCWD, path, unix.X_OK, unix.AT_EACCESS); err != nil {
		if err == unix.EACCES || err == unix.EPERM {
			return &os.PathError{Op: "exec", Path: path, Err: unix.EACCES}
		}
		// A system without AT_EACCESS: the start itself will tell.
	}
	return nil
}

func envKey(name string) string { return name }

func mayEnter(dir string) error { return unix.Access(dir, unix.X_OK) }
