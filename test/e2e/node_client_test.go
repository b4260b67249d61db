package e2e

import (
	"encoding/json"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// nodeTools are the tools of examples/mcp-node; each makes its own kind of
// noise.
var nodeTools = []string{
	"console_log", "write_unfinished", "write_sync", "dev_stdout", "child_prints",
	"child_reads", "print_answer", "print_notification",
}

// nodeServer returns a folder with examples/mcp-node's server and the client
// that drives it.
func nodeServer(t *testing.T) string {
	t.Helper()
	example := filepath.Join(moduleRoot, "examples", "mcp-node")
	return nodeProject(t, example, filepath.Join(example, "package.json"),
		filepath.Join(example, "server.mjs"), filepath.Join("testdata", "node", "client.mjs"))
}

// nodeJob is what client.mjs is told to do, nodeReport what it says about it;
// client.mjs explains the fields.
type nodeJob struct {
	Alone  []string `json:"alone"`
	Crowd  []string `json:"crowd"`
	Rounds int      `json:"rounds"`
}

type nodeReport struct {
	Tools         []string
	Calls         []struct{ Tool, Note, Text, Error string }
	Errors        []string
	Notifications []json.RawMessage
	Stderr        string
}

// driveNode lets the SDK's client do the job with the command.
func driveNode(t *testing.T, project string, job nodeJob, command ...string) nodeReport {
	t.Helper()
	text, err := json.Marshal(job)
	if err != nil {
		t.Fatal(err)
	}
	argv := append([]string{"node", "client.mjs", string(text)}, command...)
	out, errOut, status := run(t, Options{Bare: true, Command: argv, Dir: project}, "")
	if status != (Status{}) {
		t.Fatalf("the client ended with %v: %s", status, errOut)
	}
	var report nodeReport
	if err := json.Unmarshal([]byte(out), &report); err != nil {
		t.Fatalf("the client's report: %v: %s", err, out)
	}
	return report
}

const nodeRounds = 3

// allCalls is the job of calling each tool alone and then in nodeRounds crowds.
func allCalls(tools []string) nodeJob {
	return nodeJob{Alone: tools, Crowd: tools, Rounds: nodeRounds}
}

// checkNodeReport checks the report on a guarded session in which allCalls of
// some of the server's tools was the job.
func checkNodeReport(t *testing.T, r nodeReport, tools, called []string) {
	t.Helper()
	if !slices.Equal(r.Tools, tools) {
		t.Errorf("tools are %q, want %q", r.Tools, tools)
	}
	if got, want := len(r.Calls), len(called)*(1+nodeRounds); got != want {
		t.Errorf("%d calls, want %d", got, want)
	}
	for _, call := range r.Calls {
		if want := call.Tool + " " + call.Note; call.Text != want || call.Error != "" {
			t.Errorf("%s answers %q (error %q), want %q", call.Tool, call.Text, call.Error, want)
		}
		if noise := noiseOf(call.Tool, call.Note); !strings.Contains(r.Stderr, noise) {
			t.Errorf("standard error lacks %q", noise)
		}
	}
	if len(r.Errors) > 0 || len(r.Notifications) > 0 {
		t.Errorf("the client has errors %q and notifications %s", r.Errors, r.Notifications)
	}
	if t.Failed() {
		t.Logf("standard error of the server:\n%s", r.Stderr)
	}
}

// The Go server with the other SDK's client, whose streams are sockets.
func TestGoSDKServerNodeClient(t *testing.T) {
	r := driveNode(t, nodeServer(t), allCalls(goTools), wireguardrun, "--wire=fds", "--", goServer(t))
	checkNodeReport(t, r, goTools, goTools)
}
