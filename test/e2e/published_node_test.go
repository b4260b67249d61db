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
