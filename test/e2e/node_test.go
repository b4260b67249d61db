//go:build unix

package e2e

import (
	"crypto/sha256"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

// nodeProject makes a folder in which node can run scripts with the packages
// that the lock file in dir pins, and copies the scripts there.
func nodeProject(t *testing.T, dir string, scripts ...string) string {
	t.Helper()
	modules := npmInstall(t, dir)
	project := t.TempDir()
	// Node looks for packages beside the script, and nowhere else.
	if err := os.Symlink(modules, filepath.Join(project, "node_modules")); err != nil {
		t.Fatal(err)
	}
	for _, script := range scripts {
		copyFile(t, script, filepath.Join(project, filepath.Base(script)))
	}
	return project
}

// npmInstall installs what package-lock.json in dir pins, once per content of
// that file, and returns the path of node_modules. The result is kept in the
// user's cache folder. Where node or npm is missing the test is skipped.
func npmInstall(t *testing.T, dir string) string {
	t.Helper()
	needs(t, "node")
	npm := needs(t, "npm")
	manifest, lock := filepath.Join(dir, "package.json"), filepath.Join(dir, "package-lock.json")
	content, err := os.ReadFile(lock)
	if err != nil {
		t.Fatal(err)
	}
	base, err := os.UserCacheDir()
	if err != nil {
		base = os.TempDir() // no home: a service's user
	}
	base = filepath.Join(base, "wireguardrun-test")
	done := filepath.Join(base, fmt.Sprintf("npm-%x", sha256.Sum256(content))[:24])
	modules := filepath.Join(done, "node_modules")
	if _, err := os.Stat(modules); err == nil {
		return modules
	}

	// The folder gets its name when it is complete, so that an interrupted
	// install is never taken for one, and of two at once one wins.
	if err := os.MkdirAll(base, 0o755); err != nil {
		t.Fatal(err)
	}
	work, err := os.MkdirTemp(base, "npm-new-")
	if err != nil {
		t.Fatal(err)
	}
	defer os.RemoveAll(work)
	copyFile(t, manifest, filepath.Join(work, "package.json"))
	copyFile(t, lock, filepath.Join(work, "package-lock.json"))
	cmd := exec.Command(npm, "ci", "--ignore-scripts", "--no-audit", "--no-fund")
	cmd.Dir = work
	cmd.Env = environ()
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("installing the packages of %s: npm ci: %v\n%s", dir, err, out)
	}
	if err := os.Rename(work, done); err != nil {
		if _, statErr := os.Stat(modules); statErr != nil {
			t.Fatal(err)
		}
	}
	return modules
}

func copyFile(t *testing.T, from, to string) {
	t.Helper()
	content, err := os.ReadFile(from)
	if err == nil {
		err = os.WriteFile(to, content, 0o644)
	}
	if err != nil {
		t.Fatal(err)
	}
}
