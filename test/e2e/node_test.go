//go:build unix

package e2e

import (
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
// that file, and returns the path of node_modules. Where node or npm is missing
// the test is skipped.
func npmInstall(t *testing.T, dir string) string {
	t.Helper()
	needs(t, "node")
	npm := needs(t, "npm")
	manifest, lock := filepath.Join(dir, "package.json"), filepath.Join(dir, "package-lock.json")
	content, err := os.ReadFile(lock)
	if err != nil {
		t.Fatal(err)
	}
	done := cached(t, "npm", content, func(dir string) {
		copyFile(t, manifest, filepath.Join(dir, "package.json"))
		copyFile(t, lock, filepath.Join(dir, "package-lock.json"))
		cmd := exec.Command(npm, "ci", "--ignore-scripts", "--no-audit", "--no-fund")
		cmd.Dir = dir
		cmd.Env = environ()
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("installing the packages of %s: npm ci: %v\n%s", manifest, err, out)
		}
	})
	return filepath.Join(done, "node_modules")
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
