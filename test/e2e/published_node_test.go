//go:build unix

package e2e

import (
	"os"
	"path/filepath"
	"testing"
)

// mcpJob is what mcp.mjs is told to do.
type mcpJob struct {
	Tool      string         `json:"tool"`
	Arguments map[string]any `json:"arguments"`
}

func TestPublishedNodeServers(t *testing.T) {
	p := publishedNode(t)
	folder := t.TempDir()
	if err := os.WriteFile(filepath.Join(folder, "note.txt"), []byte("kept in a file\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	p.checkAll(t, []publishedServer{
		{
			name: "everything", client: "mcp.mjs", must: "Echo: hello",
			command:  []string{"mcp-server-everything", "stdio"},
			launcher: []string{"sh", "-c", "echo starting everything; mcp-server-everything stdio; exit $?"},
			noise:    "starting everything\n",
			job:      mcpJob{"echo", map[string]any{"message": "hello"}},
		},
		{
			name: "filesystem", client: "mcp.mjs", must: "kept in a file",
			command: []string{"mcp-server-filesystem", folder},
			job:     mcpJob{"read_text_file", map[string]any{"path": filepath.Join(folder, "note.txt")}},
		},
		{
			name: "sequential thinking", client: "mcp.mjs", must: `"thoughtNumber":1`,
			command:  []string{"mcp-server-sequential-thinking"},
			launcher: []string{"npx", "--no-install", "mcp-server-sequential-thinking"},
			job: mcpJob{"sequentialthinking", map[string]any{
				"thought": "one", "nextThoughtNeeded": false, "thoughtNumber": 1, "totalThoughts": 1,
			}},
		},
		memoryServer(t),
		{
			// Without a token it can only say what it could do.
			name: "github", client: "mcp.mjs", must: `"name":"search_repositories"`,
			command: []string{"mcp-server-github"},
			job:     mcpJob{},
		},
	})
}

// memoryServer is behind npm run, which prints what it runs on its standard
// output.
func memoryServer(t *testing.T) publishedServer {
	return publishedServer{
		name: "memory", client: "mcp.mjs", must: `"entities":[]`,
		command:  []string{"mcp-server-memory"},
		launcher: []string{"npm", "run", "memory"},
		noise:    "> mcp-server-memory\n",
		job:      mcpJob{"read_graph", map[string]any{}},
		env:      []string{"MEMORY_FILE_PATH=" + filepath.Join(t.TempDir(), "memory.jsonl")},
	}
}

// The same launcher without wireguardrun, to show that its noise reaches the
// client.
func TestPublishedServerUnguarded(t *testing.T) {
	p := publishedNode(t)
	s := memoryServer(t)
	if r := p.drive(t, s, s.launcher...); len(r.Errors) == 0 {
		t.Errorf("the client has no errors and sees %s", r.Seen)
	}
}

type lspRequest struct {
	Method string         `json:"method"`
	Params map[string]any `json:"params"`
}

type lspJob struct {
	File        string         `json:"file"`
	Language    string         `json:"language"`
	Requests    []lspRequest   `json:"requests"`
	Diagnostics bool           `json:"diagnostics"`
	Options     map[string]any `json:"options,omitempty"`
}

func TestPublishedLanguageServers(t *testing.T) {
	p := publishedNode(t)
	document := func(name, text string) string {
		path := filepath.Join(t.TempDir(), name)
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		return path
	}
	hover := lspRequest{"textDocument/hover", map[string]any{"position": map[string]int{"line": 1, "character": 0}}}
	symbols := lspRequest{Method: "textDocument/documentSymbol"}
	p.checkAll(t, []publishedServer{
		{
			name: "typescript", client: "lsp.mjs", must: "const answer: number",
			command:  []string{"typescript-language-server", "--stdio"},
			launcher: []string{"npx", "--no-install", "typescript-language-server", "--stdio"},
			job: lspJob{
				document("a.ts", "const answer: number = 'text';\nanswer.toFixed();\n"), "typescript",
				[]lspRequest{hover, symbols}, true,
				// Else it has npm fetch type definitions.
				map[string]any{"disableAutomaticTypingAcquisition": true},
			},
		},
		{
			name: "bash", client: "lsp.mjs", must: `"name":"greet"`,
			command: []string{"bash-language-server", "start"},
			job: lspJob{
				document("a.sh", "greet() { echo hello; }\ngreet\n"), "shellscript", []lspRequest{symbols}, false, nil,
			},
		},
		{
			name: "json", client: "lsp.mjs", must: `"diagnostics":[{`,
			command:  []string{"vscode-json-language-server", "--stdio"},
			launcher: []string{"npm", "run", "json"},
			noise:    "> vscode-json-language-server --stdio\n",
			job:      lspJob{document("a.json", "{\"a\": 1,}\n"), "json", []lspRequest{symbols}, true, nil},
		},
		{
			name: "css", client: "lsp.mjs", must: `"name":".a"`,
			command:  []string{"vscode-css-language-server", "--stdio"},
			launcher: []string{"sh", "-c", "printf 'Content-Length: soon '; vscode-css-language-server --stdio; exit $?"},
			noise:    "Content-Length: soon ",
			job:      lspJob{document("a.css", ".a { color: red }\n"), "css", []lspRequest{symbols}, false, nil},
		},
		{
			name: "pyright", client: "lsp.mjs", must: `(variable) answer: int`,
			command: []string{"pyright-langserver", "--stdio"},
			job:     lspJob{document("a.py", "answer: int = 'text'\nanswer\n"), "python", []lspRequest{hover}, true, nil},
		},
	})
}
