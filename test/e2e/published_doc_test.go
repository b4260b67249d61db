//go:build unix

package e2e

import (
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// docs/servers.md names what the tests use, in the versions that they use.
func TestServersDocument(t *testing.T) {
	read := func(path string) string {
		content, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		return string(content)
	}
	versions := map[string]string{"gopls": goplsVersion}
	var manifest struct{ Dependencies map[string]string }
	if err := json.Unmarshal([]byte(read(filepath.Join("testdata", "published", "package.json"))), &manifest); err != nil {
		t.Fatal(err)
	}
	for name, version := range manifest.Dependencies {
		versions[name] = version
	}
	// What its other lines follow from stands in a comment, in one row.
	for _, pin := range regexp.MustCompile(` ([a-z-]+)==([0-9.]+)`).FindAllStringSubmatch(read(pythonServers), -1) {
		versions[pin[1]] = pin[2]
	}
	document := read(filepath.Join(moduleRoot, "docs", "servers.md"))
	for name, version := range versions {
		found := false
		for line := range strings.Lines(document) {
			found = found || strings.Contains(line, name) && strings.Contains(line, version)
		}
		if !found {
			t.Errorf("docs/servers.md lacks %s %s", name, version)
		}
	}
}
