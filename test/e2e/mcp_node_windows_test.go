package e2e

import (
	"strings"
	"testing"
)

// nodeToolsHere are those of nodeTools that need no Unix.
var nodeToolsHere = []string{"console_log", "write_unfinished", "write_sync", "print_answer", "print_notification"}

// The server finds its descriptors by the numbers, which the C runtime of node
// has from the table that it was started with. The client is node as well: it
// makes the pipes as editors and desktop applications do.
func TestNodeSDKServer(t *testing.T) {
	project := nodeServer(t)
	for _, tt := range []struct {
		name  string
		argv  []string // in front of the server
		calls []string
	}{
		{"handed down", []string{wireguardrun, "--wire=fds", "--"}, nodeToolsHere},
		{"relayed", []string{wireguardrun, "--"}, nodeToolsHere},
		// A printed answer shows by its identifier that nobody has asked for it;
		// a printed notification is one.
		{"unmodified", []string{wireguardrun, "--strict-ids", "--wire=stdio", "--"}, without(nodeToolsHere, "print_notification")},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			r := driveNode(t, project, allCalls(tt.calls), append(tt.argv, "node", "server.mjs")...)
			checkNodeReport(t, r, nodeTools, tt.calls)
			if noise := noiseOf("console_log", "at start"); !strings.Contains(r.Stderr, noise) {
				t.Errorf("standard error lacks %q: %s", noise, r.Stderr)
			}
		})
	}
}

// The same server without wireguardrun, to show that its noise reaches the
// client: the tools are those that leave the session alive.
func TestNodeSDKServerUnguarded(t *testing.T) {
	r := driveNode(t, nodeServer(t),
		nodeJob{Alone: []string{"console_log", "write_sync", "print_answer", "print_notification"}}, "node", "server.mjs")
	// One for the line at the start and one for each of the first three tools.
	if got := len(r.Errors); got < 4 {
		t.Errorf("the client has only %d errors: %q", got, r.Errors)
	}
	if len(r.Notifications) != 1 {
		t.Errorf("the client has notifications %s, want the printed one", r.Notifications)
	}
}

// An end of the input ends the server, with its exit status and with what it
// prints last in the right place.
func TestNodeSDKServerEnds(t *testing.T) {
	project := nodeServer(t)
	for _, wire := range []string{"fds", "auto", "stdio"} {
		s := start(t, Options{Flags: []string{"--wire=" + wire}, Command: []string{"node", "server.mjs"}, Dir: project})
		initializeAndEnd(s)
		if want := "<stray console_log at exit>\n"; !strings.Contains(s.Stderr(), want) {
			t.Errorf("%s: standard error lacks %q: %q", wire, want, s.Stderr())
		}
	}
}
