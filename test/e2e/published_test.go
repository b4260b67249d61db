//go:build unix

package e2e

import (
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// Published servers know nothing of wireguardrun. Each of them is used by a
// published client twice, bare and guarded, and the client has to see the same.

// publishedServer is one of them, and what a client does with it.
type publishedServer struct {
	name    string
	command []string
	// launcher starts the server in the guarded session, in place of command.
	launcher []string
	// noise is what the launcher prints where only the protocol belongs.
	noise string
	// client is the script that drives the server, job its argument: text, or
	// anything that JSON can hold.
	client string
	job    any
	env    []string
	// must is a part of what the client sees when the server does its work.
	must string
}

// publishedReport is what a client saw; the scripts explain the fields.
type publishedReport struct {
	Seen   json.RawMessage
	Errors []string
	Stderr string
}

// published is the folder in which the clients run, and the search path that
// has the servers.
type published struct {
	dir  string
	path []string
}

func publishedNode(t *testing.T) published {
	t.Helper()
	dir := filepath.Join("testdata", "published")
	var files []string
	for _, name := range []string{"package.json", "mcp.mjs", "lsp.mjs", "dap.mjs"} {
		files = append(files, filepath.Join(dir, name))
	}
	project := nodeProject(t, dir, files...)
	return published{project, []string{filepath.Join(project, "node_modules", ".bin")}}
}

// pythonServers pins the servers from PyPI.
var pythonServers = filepath.Join("testdata", "published", "requirements.txt")

// publishedPython has the servers from PyPI, and the clients as ever.
func publishedPython(t *testing.T) (p published, python string) {
	t.Helper()
	p = publishedNode(t)
	return p, pythonWith(t, pythonServers)
}

// drive lets the client use the command.
func (p published) drive(t *testing.T, s publishedServer, command ...string) publishedReport {
	t.Helper()
	job, isText := s.job.(string)
	if !isText {
		text, err := json.Marshal(s.job)
		if err != nil {
			t.Fatal(err)
		}
		job = string(text)
	}
	path := strings.Join(append(p.path, os.Getenv("PATH")), string(os.PathListSeparator))
	out, errOut, status := run(t, Options{
		Bare:    true,
		Command: append([]string{"node", s.client, job}, command...),
		Dir:     p.dir,
		Env: append(append(append([]string{}, pythonEnv...),
			"PATH="+path, "npm_config_update_notifier=false", "npm_config_offline=true"), s.env...),
	}, "")
	if status != (Status{}) {
		t.Fatalf("the client ended with %v: %s%s", status, out, errOut)
	}
	var r publishedReport
	if err := json.Unmarshal([]byte(out), &r); err != nil {
		t.Fatalf("the client's report: %v: %s", err, out)
	}
	return r
}

// check runs the server bare and guarded.
func (p published) check(t *testing.T, s publishedServer) {
	t.Helper()
	launcher := s.launcher
	if launcher == nil {
		launcher = s.command
	}
	bare := p.drive(t, s, s.command...)
	guarded := p.drive(t, s, append([]string{wireguardrun, "--"}, launcher...)...)
	if got, want := steady(guarded.Seen), steady(bare.Seen); !bytes.Equal(got, want) {
		t.Errorf("guarded, the client sees\n%s\nbare\n%s", got, want)
	}
	if !strings.Contains(string(bare.Seen), s.must) {
		t.Errorf("the server does not do its work, there is no %q in %s", s.must, bare.Seen)
	}
	if len(guarded.Errors) > 0 || len(bare.Errors) > 0 {
		t.Errorf("the client has errors: guarded %q, bare %q", guarded.Errors, bare.Errors)
	}
	if !strings.Contains(guarded.Stderr, s.noise) {
		t.Errorf("standard error lacks %q", s.noise)
	}
	if strings.Contains(guarded.Stderr, "wireguardrun: error") {
		t.Error("wireguardrun has an error to report")
	}
	if t.Failed() {
		t.Logf("standard error, guarded:\n%s\nbare:\n%s", guarded.Stderr, bare.Stderr)
	}
}

var date = regexp.MustCompile(`\d{4}-\d\d-\d\d`)

// steady is the text without what differs from day to day.
func steady(seen []byte) []byte { return date.ReplaceAll(seen, []byte("DATE")) }

func (p published) checkAll(t *testing.T, servers []publishedServer) {
	t.Helper()
	for _, s := range servers {
		t.Run(s.name, func(t *testing.T) {
			t.Parallel()
			p.check(t, s)
		})
	}
}

func TestPublishedPythonServers(t *testing.T) {
	p, python := publishedPython(t)
	repository := t.TempDir()
	cmd := exec.Command(needs(t, "git"), "init", "--quiet", repository)
	cmd.Env = environ()
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("making a repository: %v\n%s", err, out)
	}
	if err := os.WriteFile(filepath.Join(repository, "untracked.txt"), nil, 0o644); err != nil {
		t.Fatal(err)
	}
	p.checkAll(t, []publishedServer{
		{
			name: "time", client: "mcp.mjs", must: "Asia/Tokyo",
			command:  []string{python, "-m", "mcp_server_time", "--local-timezone", "UTC"},
			launcher: append(uvx(t, python, pythonServers, "mcp-server-time"), "--local-timezone", "UTC"),
			noise:    "DEBUG uv ",
			job: mcpJob{"convert_time", map[string]any{
				"source_timezone": "UTC", "time": "12:30", "target_timezone": "Asia/Tokyo",
			}},
		},
		{
			name: "git", client: "mcp.mjs", must: "untracked.txt",
			command:  []string{python, "-m", "mcp_server_git", "--repository", repository},
			launcher: []string{"sh", "-c", `echo starting git; "$@"; exit $?`, "sh", python, "-m", "mcp_server_git", "--repository", repository},
			noise:    "starting git\n",
			job:      mcpJob{"git_status", map[string]any{"repo_path": repository}},
		},
	})
}

// A debug adapter has a program of its own below it, whose output is an event.
func TestPublishedDebugAdapter(t *testing.T) {
	t.Parallel()
	p, python := publishedPython(t)
	program := filepath.Join(p.dir, "program.py")
	if err := os.WriteFile(program, []byte("answer = 42\nprint('answer', answer)\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	p.checkAll(t, []publishedServer{{
		name: "debugpy", client: "dap.mjs", job: program, must: `"output":"answer 42\n"`,
		command: []string{python, "-m", "debugpy.adapter"},
	}})
}
