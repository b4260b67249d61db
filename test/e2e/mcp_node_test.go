package e2e

import (
	"runtime"
	"slices"
	"strings"
	"testing"
)

// nodeToolsHere are the tools that this system can run.
var nodeToolsHere = func() []string {
	if runtime.GOOS == "windows" {
		return without(nodeTools, "dev_stdout", "child_prints", stdinReader)
	}
	return nodeTools
}()

// nodeToolsShared are those of them after which a session in which the server
// speaks on its standard output goes on as usual. A printed answer shows by its
// identifier that nobody has asked for it; a printed notification is one.
var nodeToolsShared = without(nodeToolsHere, stdinReader, "print_notification")

var nodeCommand = []string{"node", "server.mjs"}

// On Windows the server finds its descriptors by the numbers, which the C
// runtime of node has from the table that it was started with. The client is
// node as well: it makes the pipes as editors and desktop applications do.
func TestNodeSDKServer(t *testing.T) {
	project := nodeServer(t)
	around := append(slices.Clone(nodeCommand), "--around")
	atStart := []string{noiseOf("print_notification", "at start")}
	for _, tt := range []nodeSession{
		{"handed down", []string{"--wire=fds"}, around, nodeToolsHere, atStart},
		{"relayed", nil, around, without(nodeToolsHere, stdinReader), atStart},
		{"on standard input and output", []string{"--wire=stdio", "--strict-ids"}, nodeCommand, nodeToolsShared, nil},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			tt.check(t, project)
		})
	}
}

// nodeSession is a session of the SDK's client with its server, guarded.
type nodeSession struct {
	name   string
	flags  []string
	server []string
	calls  []string // tools
	noise  []string // beside that of the tools
}

func (tt nodeSession) check(t *testing.T, project string) {
	t.Helper()
	r := driveNode(t, project, allCalls(tt.calls), slices.Concat([]string{wireguardrun}, tt.flags, []string{"--"}, tt.server)...)
	checkNodeReport(t, r, nodeTools, tt.calls)
	for _, noise := range append(tt.noise, noiseOf("console_log", "at start")) {
		if !strings.Contains(r.Stderr, noise) {
			t.Errorf("standard error lacks %q: %s", noise, r.Stderr)
		}
	}
}

// The same server without wireguardrun, to show that its noise reaches the
// client: the tools are those that leave the session alive.
func TestNodeSDKServerUnguarded(t *testing.T) {
	tools := without(nodeToolsHere, "write_unfinished", "dev_stdout", stdinReader)
	r := driveNode(t, nodeServer(t), nodeJob{Alone: tools}, nodeCommand...)
	// One for the line at the start and one for each tool but the last.
	if got := len(r.Errors); got < len(tools) {
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
	for _, wire := range []string{"fds", "auto", "stdio"} {
		t.Run(wire, func(t *testing.T) {
			checkNodeEnd(t, Options{Flags: []string{"--wire=" + wire}, Command: nodeCommand, Dir: project})
		})
	}
}

func checkNodeEnd(t *testing.T, o Options) {
	t.Helper()
	s := start(t, o)
	initializeAndEnd(s)
	if want := "<stray console_log at exit>\n"; !strings.Contains(s.Stderr(), want) {
		t.Errorf("standard error lacks %q: %q", want, s.Stderr())
	}
}
