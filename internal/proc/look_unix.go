//go:build unix

package proc

import (
	"errors"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"
)

func look(name, dir string, env []string) (string, error) {
	if name == "" {
		return "", ErrNotFound // and not the first directory in PATH
	}
	if strings.Contains(name, "/") {
		return name, executable(inDir(name, dir))
	}
	denied := error(nil)
	path, set := LookupEnv(env, "PATH")
	if !set {
		path = usualPath
	}
	for _, d := range filepath.SplitList(path) {
		if d == "" {
			d = "." // POSIX: an empty element is the current directory
		}
		candidate := d + "/" + name
		err := executable(inDir(candidate, dir))
		if err == nil {
			return candidate, nil
		}
		// A directory that can't be searched says nothing of the file.
		var at *os.PathError
		if denied == nil && errors.As(err, &at) && at.Op == "exec" {
			denied = err
		}
	}
	if denied != nil {
		return "", denied
	}
	return "", ErrNotFound
}

// usualPath is what execvp takes where PATH is not set.
const usualPath = "/bin:/usr/bin"

// inDir does not clean the path: if dir is a symbolic link, ".." after it is
// not where dir's name says.
func inDir(path, dir string) string {
	if dir == "" || filepath.IsAbs(path) {
		return path
	}
	return dir + "/" + path
}

func executable(path string) error {
	st, err := os.Stat(path)
	if err != nil {
		return err
	}
	if st.IsDir() {
		return &os.PathError{Op: "exec", Path: path, Err: unix.EISDIR}
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
