//go:build unix

package proc

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"
)

func TestLook(t *testing.T) {
	dir := tempDir(t)
	write(t, dir, "bin/tool", "", 0o755)
	write(t, dir, "bin/denied", "", 0o644)
	write(t, dir, "later/denied", "", 0o755)
	write(t, dir, "later/tool", "", 0o755)
	write(t, dir, "here", "", 0o755)
	write(t, dir, "work/relative/tool", "", 0o755)
	write(t, dir, "work/local", "", 0o755)
	write(t, dir, "file", "", 0o644)
	for _, d := range []string{"bin/folder", "elsewhere/deep"} {
		if err := os.MkdirAll(filepath.Join(dir, d), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	// "link/.." is elsewhere and not work.
	if err := os.Symlink(filepath.Join(dir, "elsewhere/deep"), filepath.Join(dir, "work/link")); err != nil {
		t.Fatal(err)
	}
	write(t, dir, "elsewhere/beside", "", 0o755)
	in := func(name string) string { return filepath.Join(dir, name) }
	work := in("work")

	denied, missing, unknown := fs.ErrPermission, fs.ErrNotExist, ErrNotFound
	for _, test := range []struct {
		name      string
		what, dir string
		path      string
		want      string
		err       error
	}{
		{name: "in PATH", what: "tool", path: in("bin"), want: in("bin/tool")},
		{name: "the first in PATH", what: "tool", path: in("later") + ":" + in("bin"), want: in("later/tool")},
		{name: "directories that are missing", what: "tool", path: in("nowhere") + ":" + in("bin"), want: in("bin/tool")},
		{name: "a file in PATH", what: "tool", path: in("file") + ":" + in("bin"), want: in("bin/tool")},
		{name: "not in PATH", what: "nothing", path: in("bin"), err: unknown},
		{name: "no PATH", what: "tool", err: unknown},
		{name: "no name", what: "", path: in("bin"), err: unknown},
		{name: "not executable", what: "denied", path: in("bin"), err: denied},
		{name: "not executable, and then executable", what: "denied", path: in("bin") + ":" + in("later"), want: in("later/denied")},
		{name: "a directory in PATH", what: "folder", path: in("bin"), err: unix.EISDIR},
		{name: "a directory in PATH, and elsewhere nothing", what: "folder", path: in("bin") + ":" + in("later"), err: unix.EISDIR},

		{name: "an empty element at the start", what: "local", dir: work, path: ":" + in("bin"), want: "./local"},
		{name: "an empty element in the middle", what: "local", dir: work, path: in("bin") + "::" + in("later"), want: "./local"},
		{name: "an empty element at the end", what: "local", dir: work, path: in("bin") + ":", want: "./local"},
		{name: "a relative element", what: "tool", dir: work, path: "relative", want: "relative/tool"},
		{name: "a relative element of our own directory", what: "tool", dir: work, path: "bin", err: unknown},

		{name: "a path", what: in("here"), want: in("here")},
		{name: "a path, whatever PATH is", what: in("here"), path: in("bin"), want: in("here")},
		{name: "a relative path", what: "./local", dir: work, want: "./local"},
		{name: "a relative path up", what: "../here", dir: work, want: "../here"},
		{name: "a relative path through a link", what: "link/../beside", dir: work, want: "link/../beside"},
		{name: "a relative path from a linked directory", what: "../beside", dir: in("work/link"), want: "../beside"},
		{name: "a path that is missing", what: "./nothing", dir: work, want: "./nothing", err: missing},
		{name: "a path that is not executable", what: in("file"), want: in("file"), err: denied},
		{name: "a path to a directory", what: in("bin"), want: in("bin"), err: unix.EISDIR},
		{name: "a path below a file", what: in("file") + "/x", want: in("file") + "/x", err: unix.ENOTDIR},
	} {
		t.Run(test.name, func(t *testing.T) {
			env := []string{"A=b"}
			if test.path != "" {
				env = append(env, "PATH="+test.path)
			}
			got, err := Look(test.what, test.dir, env)
			if got != test.want || !errors.Is(err, test.err) {
				t.Errorf("%q, %v, want %q, %v", got, err, test.want, test.err)
			}
		})
	}
}

// What Look finds from another directory is what a start there executes.
func TestStartOfARelativePath(t *testing.T) {
	dir := tempDir(t)
	write(t, dir, "tool", "#!/bin/sh\necho \"$0 in $PWD\"\n", 0o755)
	for what, path := range map[string]string{"./tool": "", "tool": ":/bin"} {
		env := []string{"PATH=" + path}
		found, err := Look(what, dir, env)
		if err != nil {
			t.Fatal(err)
		}
		c := Command{Path: found, Args: []string{what}, Dir: dir, Env: env, Terminal: noTerminal}
		if got, status := launch(t, c).end(); got != "./tool in "+dir+"\n" || status != (Status{}) {
			t.Errorf("%s: %q, %+v", what, got, status)
		}
	}
}
