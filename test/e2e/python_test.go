//go:build unix

package e2e

import (
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"testing"
)

// pythonEnv is added to the environment of every Python, so that a setting of
// the machine doesn't decide what a test sees. Empty is the same as not set.
var pythonEnv = []string{
	"PYTHONPATH=", "PYTHONHOME=", "PYTHONUNBUFFERED=", "PYTHONWARNINGS=", "PYTHONDEVMODE=", "PYTHONIOENCODING=utf-8",
}

// pythonWith returns the interpreter of a virtual environment that has the
// packages of the requirements file, which pins all of them with their hashes.
// It is made once per content of that file and Python. Where a Python that can
// do that is missing the test is skipped.
//
// Use no script of the environment: those beside the interpreter hold the path
// that the environment was made at.
func pythonWith(t *testing.T, requirements string) string {
	t.Helper()
	python := needs(t, "python3")
	if runtime.GOOS != "linux" && runtime.GOOS != "darwin" {
		cannotRun(t, "PyPI has no wheels for %s", runtime.GOOS)
	}
	content, err := os.ReadFile(requirements)
	if err != nil {
		t.Fatal(err)
	}
	// Debian has venv and pip (which is in ensurepip) in packages of their own.
	identity, err := pythonCommand(python, "-c", `import ensurepip, sys, venv
if sys.version_info < (3, 10): sys.exit("the MCP SDK needs Python 3.10, this is " + sys.version)
print(sys.version, sys.base_prefix)`).CombinedOutput()
	if err != nil {
		cannotRun(t, "%s can't make the virtual environment: %v\n%s", python, err, identity)
	}

	done := cached(t, "python", slices.Concat(identity, content), func(dir string) {
		for _, argv := range [][]string{
			{python, "-m", "venv", dir},
			// Wheels only: to build a package would run, and fetch, what is not pinned.
			{filepath.Join(dir, "bin", "python"), "-m", "pip", "install", "--quiet", "--disable-pip-version-check",
				"--require-hashes", "--only-binary=:all:", "-r", requirements},
		} {
			if out, err := pythonCommand(argv...).CombinedOutput(); err != nil {
				t.Fatalf("installing the packages of %s: %q: %v\n%s", requirements, argv, err, out)
			}
		}
	})
	return filepath.Join(done, "bin", "python")
}

// pythonCommand is a command that runs Python, or something written in it.
func pythonCommand(argv ...string) *exec.Cmd {
	cmd := exec.Command(argv[0], argv[1:]...)
	cmd.Env = environ(pythonEnv...)
	return cmd
}

// uvx returns the command line that has uvx run the program of that name out
// of the package of the same name, both of them in the requirements file that
// the interpreter was made with. What that needs uvx installs from a cache, so
// that no network is needed, and it tells at length what it does.
func uvx(t *testing.T, python, requirements, program string) []string {
	t.Helper()
	pins, err := filepath.Abs(requirements)
	if err != nil {
		t.Fatal(err)
	}
	content, err := os.ReadFile(pins)
	if err != nil {
		t.Fatal(err)
	}
	bin := filepath.Dir(python)
	cache := cached(t, "uv", slices.Concat(content, []byte(python), []byte(program)), func(dir string) {
		argv := []string{filepath.Join(bin, "uv"), "pip", "install", "--quiet", "--cache-dir", dir, "--python", python,
			"--target", t.TempDir(), "--link-mode=copy", "--only-binary=:all:", "--constraints", pins, program}
		if out, err := pythonCommand(argv...).CombinedOutput(); err != nil {
			t.Fatalf("installing what uvx needs: %q: %v\n%s", argv, err, out)
		}
	})
	return []string{filepath.Join(bin, "uvx"), "--verbose", "--offline", "--cache-dir", cache, "--python", python,
		"--constraints", pins, program}
}
