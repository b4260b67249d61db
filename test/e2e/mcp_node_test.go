//go:build unix

package e2e

import (
	"bufio"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
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
	return nodeProject(t, example,
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

// checkNodeReport checks the report on a guarded session in which each tool
// was called alone and then in nodeRounds crowds.
func checkNodeReport(t *testing.T, r nodeReport, tools []string) {
	t.Helper()
	if !slices.Equal(r.Tools, tools) {
		t.Errorf("tools are %q, want %q", r.Tools, tools)
	}
	if got, want := len(r.Calls), len(tools)*(1+nodeRounds); got != want {
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

func TestNodeSDKServer(t *testing.T) {
	r := driveNode(t, nodeServer(t), nodeJob{Alone: nodeTools, Crowd: nodeTools, Rounds: nodeRounds},
		wireguardrun, "--wire=fds", "--", "node", "server.mjs")
	checkNodeReport(t, r, nodeTools)
	if noise := "<stray console_log at start>\n"; !strings.Contains(r.Stderr, noise) {
		t.Errorf("standard error lacks %q", noise)
	}
}

// The Go server with the other SDK's client, whose streams are sockets.
func TestGoSDKServerNodeClient(t *testing.T) {
	r := driveNode(t, nodeServer(t), nodeJob{Alone: goTools, Crowd: goTools, Rounds: nodeRounds},
		wireguardrun, "--wire=fds", "--", goServer(t))
	checkNodeReport(t, r, goTools)
}

// The same server without wireguardrun, to show that its noise reaches the
// client: the tools are those that leave the session alive.
func TestNodeSDKServerUnguarded(t *testing.T) {
	r := driveNode(t, nodeServer(t),
		nodeJob{Alone: []string{"console_log", "write_sync", "child_prints", "print_answer", "print_notification"}},
		"node", "server.mjs")
	// One for the line at the start and one for each of the first four tools.
	if got := len(r.Errors); got < 5 {
		t.Errorf("the client has only %d errors: %q", got, r.Errors)
	}
	if len(r.Notifications) != 1 {
		t.Errorf("the client has notifications %s, want the printed one", r.Notifications)
	}
}

// An end of the input ends the server, with its exit status and with what it
// prints last in the right place. Only the harness can see that: the SDK's
// client says nothing about the end and, if need be, kills.
func TestNodeSDKServerEnds(t *testing.T) {
	project := nodeServer(t)
	for _, sockets := range []bool{false, true} {
		s := start(t, Options{Command: []string{"node", "server.mjs"}, Dir: project, Sockets: sockets})
		s.Send(initialize)
		if line := s.ReadLine(); !strings.Contains(line, `"serverInfo":{"name":"noisy"`) {
			t.Fatalf("the answer is %s", line)
		}
		s.CloseStdin()
		s.ExpectEnd()
		s.ExpectExit(Status{})
		if want := "<stray console_log at exit>\n"; !strings.HasSuffix(s.Stderr(), want) {
			t.Errorf("standard error does not end with %q: %q", want, s.Stderr())
		}
	}
}

// A developer without a client has files, or a terminal, which Node opens in
// the same way.
func TestNodeSDKServerFiles(t *testing.T) {
	project := nodeServer(t)
	in, out := filepath.Join(project, "in"), filepath.Join(project, "out")
	requests := initialize + `{"jsonrpc":"2.0","method":"notifications/initialized"}` + "\n" +
		`{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"write_sync","arguments":{"note":"file"}}}` + "\n"
	if err := os.WriteFile(in, []byte(requests), 0o644); err != nil {
		t.Fatal(err)
	}
	stdin, err := os.Open(in)
	if err != nil {
		t.Fatal(err)
	}
	defer stdin.Close()
	stdout, err := os.Create(out)
	if err != nil {
		t.Fatal(err)
	}
	defer stdout.Close()

	s := start(t, Options{Command: []string{"node", "server.mjs"}, Dir: project, Stdin: stdin, Stdout: stdout})
	s.ExpectExit(Status{})
	answers, err := os.ReadFile(out)
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(string(answers), "\n")
	if len(lines) != 3 || !strings.Contains(lines[0], `"serverInfo":{"name":"noisy"`) ||
		!strings.Contains(lines[1], `"text":"write_sync file"`) || lines[2] != "" {
		t.Errorf("the answers are %q", answers)
	}
	if noise := noiseOf("write_sync", "file"); !strings.Contains(s.Stderr(), noise) {
		t.Errorf("standard error lacks %q: %q", noise, s.Stderr())
	}
}

// Node makes the wire non-blocking, for all who share it, and leaves it so.
// With wireguardrun, who gave us the wire gets it back as it was.
func TestNodeSDKServerLeavesWireBlocking(t *testing.T) {
	project := nodeServer(t)
	for _, bare := range []bool{false, true} {
		in, toServer, err := os.Pipe()
		if err != nil {
			t.Fatal(err)
		}
		fromServer, out, err := os.Pipe()
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			for _, f := range []*os.File{in, toServer, fromServer, out} {
				f.Close()
			}
		})
		o := Options{Command: []string{"node", "server.mjs"}, Dir: project, Stdin: in, Stdout: out}
		if bare {
			// Handed down by hand and on 3 and 4 only: what is on 0 to 2 node
			// itself puts back.
			o.Bare, o.Stdin, o.Stdout = true, nil, nil
			o.Files, o.Env = []*os.File{in, out}, []string{"WIREGUARDRUN_IN=3", "WIREGUARDRUN_OUT=4"}
		}
		s := start(t, o)
		fromServer.SetReadDeadline(limit(t))
		toServer.WriteString(initialize)
		line, err := bufio.NewReader(fromServer).ReadString('\n')
		if err != nil {
			t.Fatalf("reading the answer: %v, after %q", err, line)
		}
		toServer.Close()
		s.ExpectExit(Status{})
		if got := []bool{nonblocking(t, in), nonblocking(t, out)}; got[0] != bare || got[1] != bare {
			t.Errorf("non-blocking afterwards (bare is %v): %v", bare, got)
		}
	}
}

// nonblocking tells whether O_NONBLOCK is set. It does not use Fd, which
// would clear it.
func nonblocking(t *testing.T, f *os.File) (set bool) {
	t.Helper()
	conn, err := f.SyscallConn()
	if err == nil {
		err = conn.Control(func(fd uintptr) {
			flags, ferr := unix.FcntlInt(fd, unix.F_GETFL, 0)
			if ferr != nil {
				t.Errorf("reading the flags: %v", ferr)
			}
			set = flags&unix.O_NONBLOCK != 0
		})
	}
	if err != nil {
		t.Fatal(err)
	}
	return set
}
