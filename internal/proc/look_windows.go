package proc

import (
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"

	"golang.org/x/sys/windows"
)

// look returns an absolute path: the system takes a relative one from our own
// directory, not from the child's. The current directory is not searched
// unless PATH names it, so that a file lying there can't pose as a server; a
// program that is only there gives exec.ErrDot.
func look(name, dir string, env []string) (string, error) {
	if strings.ContainsRune(name, 0) {
		return "", &os.PathError{Op: "exec", Path: name, Err: windows.ERROR_INVALID_NAME}
	}
	if name == "" || name == "." || name == ".." {
		return "", ErrNotFound
	}
	extensions := pathExtensions(env)
	if strings.ContainsAny(name, `:\/`) {
		path, err := inDir(name, dir)
		if err != nil {
			return "", err
		}
		// Whoever gives a path may mean a file without an extension.
		return withExtension(path, append(extensions, ""))
	}
	var denied error
	for _, d := range filepath.SplitList(Getenv(env, "PATH")) {
		if d == "" {
			continue
		}
		directory, err := inDir(d, dir)
		if err != nil {
			continue
		}
		path, err := withExtension(filepath.Join(directory, name), extensions)
		if err == nil {
			return path, nil
		}
		if denied == nil && isDenied(err) {
			denied = err
		}
	}
	if denied != nil {
		return "", denied
	}
	if here, err := inDir(name, dir); err == nil {
		if path, err := withExtension(here, extensions); err == nil {
			return "", &os.PathError{Op: "exec", Path: path, Err: exec.ErrDot}
		}
	}
	return "", ErrNotFound
}

// inDir makes path absolute, from dir. `\x` and `C:x` are relative too.
func inDir(path, dir string) (string, error) {
	if dir != "" && filepath.VolumeName(path) == "" {
		if os.IsPathSeparator(path[0]) {
			path = filepath.VolumeName(dir) + path
		} else {
			path = filepath.Join(dir, path)
		}
	}
	return filepath.Abs(path)
}

// pathExtensions are those of env's PATHEXT, each with its dot.
func pathExtensions(env []string) []string {
	var list []string
	for _, e := range strings.Split(Getenv(env, "PATHEXT"), ";") {
		if e == "" {
			continue
		}
		if e[0] != '.' {
			e = "." + e
		}
		list = append(list, e)
	}
	if list == nil {
		return []string{".com", ".exe", ".bat", ".cmd"}
	}
	return list
}

// withExtension returns the program that path names: the file itself if its
// name has an extension, else, or if there is no such file, the first with one
// of extensions added.
func withExtension(path string, extensions []string) (string, error) {
	var denied error
	if strings.Contains(filepath.Base(path), ".") {
		extensions = append([]string{""}, extensions...)
	}
	for _, e := range extensions {
		err := runnable(path + e)
		if err == nil {
			return path + e, nil
		}
		if denied == nil && isDenied(err) {
			denied = err
		}
	}
	if denied != nil {
		return "", denied
	}
	return "", &os.PathError{Op: "exec", Path: path, Err: fs.ErrNotExist}
}

func isDenied(err error) bool {
	at, ok := err.(*os.PathError)
	return ok && at.Op == "exec" && at.Err == syscall.EISDIR
}

func runnable(path string) error {
	st, err := os.Stat(path)
	if err != nil {
		return err
	}
	if st.IsDir() {
		return &os.PathError{Op: "exec", Path: path, Err: syscall.EISDIR}
	}
	return nil
}

// envKey: names in the environment have no case.
func envKey(name string) string { return strings.ToUpper(name) }

// mayEnter leaves it to the start, which tells as well.
func mayEnter(string) error { return nil }
