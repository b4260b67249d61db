package e2e

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// The README shows what the examples do, word for word: the tests run the very
// code that a reader copies.
func TestReadmeSnippets(t *testing.T) {
	readme, err := os.ReadFile(filepath.Join(moduleRoot, "README.md"))
	if err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct{ language, file string }{
		{"go", "examples/mcp-go/main.go"},
		{"js", "examples/mcp-node/server.mjs"},
		{"python", "examples/mcp-python/server.py"},
	} {
		want := "```" + tt.language + "\n" + snippet(t, tt.file) + "```\n"
		if !strings.Contains(string(readme), want) {
			t.Errorf("README.md lacks the snippet of %s, which is:\n%s", tt.file, want)
		}
	}
}

// snippet returns the lines between the two marks of a file, without the
// indentation that the first of them has.
func snippet(t *testing.T, file string) string {
	t.Helper()
	content, err := os.ReadFile(filepath.Join(moduleRoot, filepath.FromSlash(file)))
	if err != nil {
		t.Fatal(err)
	}
	comment := "//"
	if filepath.Ext(file) == ".py" {
		comment = "#"
	}
	_, rest, begins := strings.Cut(string(content), comment+" snippet:begin\n")
	body, _, ends := strings.Cut(rest, comment+" snippet:end\n")
	if !begins || !ends {
		t.Fatalf("%s has no snippet between its marks", file)
	}
	indent := body[:len(body)-len(strings.TrimLeft(body, " \t"))]
	var b strings.Builder
	for line := range strings.Lines(strings.TrimRight(body, " \t")) {
		b.WriteString(strings.TrimPrefix(line, indent))
	}
	return b.String()
}
