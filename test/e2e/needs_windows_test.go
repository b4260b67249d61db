package e2e

import (
	"os"
	"path/filepath"
	"testing"
)

// nodeProject makes a folder in which node can run scripts with the packages
// that testdata/windows pins, which must have been installed before:
// WGR_NODE_MODULES names the folder, since npm may not run where the tests do.
func nodeProject(t *testing.T, _ string, scripts ...string) string {
	t.Helper()
	needs(t, "node")
	modules := os.Getenv("WGR_NODE_MODULES")
	if modules == "" {
		cannotRun(t, "WGR_NODE_MODULES is needed: the node_modules of testdata/windows")
	}
	// Node looks for packages in the folders above the script, and links need
	// a right that not everybody has.
	project, err := os.MkdirTemp(filepath.Dir(modules), "project-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := os.RemoveAll(project); err != nil {
			t.Error(err)
		}
	})
	for _, script := range scripts {
		content, err := os.ReadFile(script)
		if err != nil {
			t.Fatal(err)
		}
		writeFile(t, filepath.Join(project, filepath.Base(script)), string(content))
	}
	return project
}
