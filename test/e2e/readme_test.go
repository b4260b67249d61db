package e2e

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
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

// Each flag of the help text is in the README's table, and no other.
func TestReadmeFlags(t *testing.T) {
	readme, err := os.ReadFile(filepath.Join(moduleRoot, "README.md"))
	if err != nil {
		t.Fatal(err)
	}
	help, _, _ := run(t, Options{Flags: []string{"--help"}}, "")
	var got, want []string
	for line := range strings.Lines(string(readme)) {
		if cell, isRow := strings.CutPrefix(line, "| `--"); isRow {
			cell, _, _ = strings.Cut("`--"+cell, " | ")
			for _, flag := range regexp.MustCompile("`--([a-z-]+)").FindAllStringSubmatch(cell, -1) {
				got = append(got, flag[1])
			}
		}
	}
	for _, flag := range regexp.MustCompile(`(?m)^  --([a-z-]+)`).FindAllStringSubmatch(help, -1) {
		if flag[1] != "version" {
			want = append(want, flag[1])
		}
	}
	slices.Sort(got)
	slices.Sort(want)
	if len(want) == 0 || !slices.Equal(got, want) {
		t.Errorf("the README has the flags\n%q, the help text\n%q", got, want)
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
