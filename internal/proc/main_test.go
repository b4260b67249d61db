package proc

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"testing"

	"github.com/wireguardrun/wireguardrun/internal/pipes"
)

// roles are what the test binary does instead of testing when it is started
// again, with the role's name in the environment. args are the arguments
// after the program's name; the result is the exit code.
var roles = map[string]func(args []string) int{
	"exit": func(args []string) int {
		code, err := strconv.Atoi(args[0])
		if err != nil {
			return 99
		}
		return code
	},
	"arguments": func(args []string) int {
		fmt.Printf("%q", args)
		return 0
	},
	"copy": func([]string) int {
		if _, err := io.Copy(os.Stdout, os.Stdin); err != nil {
			fmt.Fprint(os.Stderr, err)
			return 1
		}
		fmt.Fprint(os.Stderr, "copied")
		return 0
	},
	"surroundings": func(args []string) int {
		dir, err := os.Getwd()
		if err != nil {
			return 1
		}
		fmt.Print(dir)
		for _, name := range args {
			value, set := os.LookupEnv(name)
			fmt.Printf("\n%s=%s %t", name, value, set)
		}
		return 0
	},
	"free pair": func([]string) int {
		in, out := FreePair(os.Environ())
		fmt.Print(in, out)
		return 0
	},
}

const roleVariable = "PROC_TEST_ROLE"

func TestMain(m *testing.M) {
	if os.Args[0] == ListenStage {
		// What cmd/wireguardrun does under this name.
		fmt.Fprintln(os.Stderr, RunListenStage(os.Args))
		os.Exit(98)
	}
	if name := os.Getenv(roleVariable); name != "" {
		_ = os.Unsetenv(roleVariable)
		role := roles[name]
		if role == nil {
			os.Exit(97)
		}
		os.Exit(role(os.Args[1:]))
	}
	os.Exit(m.Run())
}

func self(t *testing.T) string {
	t.Helper()
	path, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	return path
}

func roleEnv(role string, more ...string) []string {
	set := append([]string{roleVariable + "=" + role, "GORACE=atexit_sleep_ms=0"}, more...)
	return Environ(os.Environ(), set)
}

// Wait waits for the child's end. Events must not be asked for as well.
func (p *Process) Wait() (Status, error) {
	for e := range p.Events() {
		if e.Kind == Exited {
			return e.Status, nil
		}
	}
	return Status{}, errors.New("the end was not told")
}

// asRole returns the command of a role for Start.
func asRole(t *testing.T, role string, args ...string) Command {
	t.Helper()
	path := self(t)
	return Command{Path: path, Args: append([]string{path}, args...), Env: roleEnv(role), Terminal: pipes.None}
}

// viaExec returns the command of a role for package os/exec: a child that uses
// this package.
func viaExec(t *testing.T, role string, args ...string) *exec.Cmd {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), self(t), args...)
	cmd.Env = roleEnv(role)
	cmd.Stderr = os.Stderr
	return cmd
}

// running is a started command, with our ends of the pipes that are its
// standard streams.
type running struct {
	*Process
	t           *testing.T
	in          *os.File
	out, stderr *os.File
}

// launch starts c with pipes as its standard streams, and more as its further
// descriptors.
func launch(t *testing.T, c Command, more ...pipes.Handle) *running {
	t.Helper()
	r := &running{t: t}
	var theirs []*os.File
	pair := func() (reader, writer *os.File) {
		reader, writer, err := os.Pipe()
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = reader.Close(); _ = writer.Close() })
		return reader, writer
	}
	for _, end := range []**os.File{&r.in, &r.out, &r.stderr} {
		reader, writer := pair()
		if end == &r.in {
			reader, writer = writer, reader
		}
		*end = reader
		theirs = append(theirs, writer)
		c.Files = append(c.Files, pipes.Handle(writer.Fd()))
	}
	c.Files = append(c.Files, more...)
	p, err := Start(c)
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range theirs {
		_ = f.Close()
	}
	r.Process = p
	return r
}

// end closes the child's input and returns its output and how it ended.
func (r *running) end() (stdout string, status Status) {
	r.t.Helper()
	_ = r.in.Close()
	out, err := io.ReadAll(r.out)
	if err != nil {
		r.t.Error(err)
	}
	status, err = r.Wait()
	if err != nil {
		r.t.Error(err)
	}
	complaints, err := io.ReadAll(r.stderr)
	if err != nil {
		r.t.Error(err)
	}
	if len(complaints) > 0 {
		r.t.Logf("standard error: %s", complaints)
	}
	return string(out), status
}

// tempDir returns a new directory under the name that the system gives it.
func tempDir(t *testing.T) string {
	t.Helper()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	return dir
}

// write makes a file below dir, with the folders above it.
func write(t *testing.T, dir, name, content string, mode os.FileMode) string {
	t.Helper()
	path := filepath.Join(dir, filepath.FromSlash(name))
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(content), mode); err != nil {
		t.Fatal(err)
	}
	return path
}
