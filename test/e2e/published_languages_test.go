//go:build unix

package e2e

import (
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"testing"
)

// lspJob is what lsp.mjs is told to do.
type lspJob struct {
	File        string         `json:"file"`
	Language    string         `json:"language"`
	Requests    []lspRequest   `json:"requests"`
	Diagnostics bool           `json:"diagnostics"`
	Options     map[string]any `json:"options,omitempty"`
}

type lspRequest struct {
	Method string         `json:"method"`
	Params map[string]any `json:"params"`
}

var symbols = lspRequest{Method: "textDocument/documentSymbol"}

// hover is about the second line, from that character on.
func hover(character int) lspRequest {
	return lspRequest{"textDocument/hover", map[string]any{
		"position": map[string]int{"line": 1, "character": character},
	}}
}

// document makes a file in a folder of its own.
func document(t *testing.T, name, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestPublishedNodeLanguageServers(t *testing.T) {
	p := publishedNode(t)
	p.checkAll(t, []publishedServer{
		{
			name: "typescript", client: "lsp.mjs", must: "const answer: number",
			command:  []string{"typescript-language-server", "--stdio"},
			launcher: []string{"npx", "--no-install", "typescript-language-server", "--stdio"},
			job: lspJob{
				document(t, "a.ts", "const answer: number = 'text';\nanswer.toFixed();\n"), "typescript",
				[]lspRequest{hover(0), symbols}, true,
				// Else it has npm fetch type definitions.
				map[string]any{"disableAutomaticTypingAcquisition": true},
			},
		},
		{
			name: "bash", client: "lsp.mjs", must: `"name":"greet"`,
			command: []string{"bash-language-server", "start"},
			job: lspJob{
				document(t, "a.sh", "greet() { echo hello; }\ngreet\n"), "shellscript", []lspRequest{symbols}, false, nil,
			},
		},
		{
			name: "json", client: "lsp.mjs", must: `"diagnostics":[{`,
			command:  []string{"vscode-json-language-server", "--stdio"},
			launcher: []string{"npm", "run", "json"},
			noise:    "> vscode-json-language-server --stdio\n",
			job:      lspJob{document(t, "a.json", "{\"a\": 1,}\n"), "json", []lspRequest{symbols}, true, nil},
		},
		{
			name: "css", client: "lsp.mjs", must: `"name":".a"`,
			command:  []string{"vscode-css-language-server", "--stdio"},
			launcher: []string{"sh", "-c", "printf 'Content-Length: soon '; vscode-css-language-server --stdio; exit $?"},
			noise:    "Content-Length: soon ",
			job:      lspJob{document(t, "a.css", ".a { color: red }\n"), "css", []lspRequest{symbols}, false, nil},
		},
		{
			name: "pyright", client: "lsp.mjs", must: `(variable) answer: int`,
			command: []string{"pyright-langserver", "--stdio"},
			job: lspJob{
				document(t, "a.py", "answer: int = 'text'\nanswer\n"), "python", []lspRequest{hover(0)}, true, nil,
			},
		},
	})
}

func TestPublishedPythonLanguageServer(t *testing.T) {
	t.Parallel()
	p, python := publishedPython(t)
	p.checkAll(t, []publishedServer{{
		name: "pylsp", client: "lsp.mjs", must: "Says hello.",
		command: []string{python, "-m", "pylsp"},
		job: lspJob{
			document(t, "a.py", "def greet(): 'Says hello.'\ngreet()\n"), "python",
			[]lspRequest{hover(0), symbols}, false, nil,
		},
	}})
}

const goplsVersion = "0.21.1"

func TestPublishedGoLanguageServer(t *testing.T) {
	t.Parallel()
	p := publishedNode(t)
	pkg := "golang.org/x/tools/gopls@v" + goplsVersion
	bin := cached(t, "go", []byte(pkg+runtime.Version()), func(dir string) {
		cmd := exec.Command("go", "install", pkg)
		cmd.Env = environ("GOBIN="+dir, "CGO_ENABLED=0", "GOFLAGS=")
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("installing gopls: %v\n%s", err, out)
		}
	})
	file := document(t, "a.go", "package a\nvar answer int = `text`\n")
	if err := os.WriteFile(filepath.Join(filepath.Dir(file), "go.mod"), []byte("module a\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	p.checkAll(t, []publishedServer{{
		name: "gopls", client: "lsp.mjs", must: "var answer int",
		command: []string{filepath.Join(bin, "gopls")},
		job:     lspJob{file, "go", []lspRequest{hover(4), symbols}, true, nil},
		// What it keeps about itself and for later runs is not the machine's.
		env: []string{"XDG_CONFIG_HOME=" + t.TempDir(), "XDG_CACHE_HOME=" + t.TempDir()},
	}})
}
