//go:build unix

package e2e

import (
	"crypto/sha256"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
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
// It is made once per content of that file and Python, and kept in the user's
// cache folder. Where a Python that can do that is missing the test is skipped.
//
// Use nothing else of the environment: the scripts beside the interpreter hold
// the path that the environment was made at.
func pythonWith(t *testing.T, requirements string) string {
	t.Helper()
	python := needs(t, "python3")
	content, err := os.ReadFile(requirements)
	if err != nil {
		t.Fatal(err)
	}
	command := func(argv ...string) *exec.Cmd {
		cmd := exec.Command(argv[0], argv[1:]...)
		cmd.Env = environ(pythonEnv...)
		return cmd
	}
	// Debian has venv and pip (which is in ensurepip) in packages of their own.
	identity, err := command(python, "-c", `import ensurepip, sys, venv
if sys.version_info < (3, 10): sys.exit("the MCP SDK needs Python 3.10, this is " + sys.version)
print(sys.version, sys.base_prefix)`).CombinedOutput()
	if err != nil {
		cannotRun(t, "%s can't make the virtual environment: %v\n%s", python, err, identity)
	}

	base, err := os.UserCacheDir()
	if err != nil {
		base = os.TempDir() // no home: a service's user
	}
	base = filepath.Join(base, "wireguardrun-test")
	done := filepath.Join(base, fmt.Sprintf("python-%x", sha256.Sum256(slices.Concat(identity, content)))[:24])
	interpreter := filepath.Join(done, "bin", "python")
	if _, err := os.Stat(interpreter); err == nil {
		return interpreter
	}

	// The folder gets its name when it is complete, so that an interrupted
	// install is never taken for one, and of two at once one wins.
	if err := os.MkdirAll(base, 0o755); err != nil {
		t.Fatal(err)
	}
	work, err := os.MkdirTemp(base, "python-new-")
	if err != nil {
		t.Fatal(err)
	}
	defer os.RemoveAll(work)
	for _, argv := range [][]string{
		{python, "-m", "venv", work},
		// Wheels only: to build a package would run, and fetch, what is not pinned.
		{filepath.Join(work, "bin", "python"), "-m", "pip", "install", "--quiet", "--disable-pip-version-check",
			"--require-hashes", "--only-binary=:all:", "-r", requirements},
	} {
		if out, err := command(argv...).CombinedOutput(); err != nil {
			cannotRun(t, "the packages of %s can't be installed here: %q: %v\n%s", requirements, argv, err, out)
		}
	}
	if err := os.Rename(work, done); err != nil {
		if _, statErr := os.Stat(interpreter); statErr != nil {
			t.Fatal(err)
		}
	}
	return interpreter
}
