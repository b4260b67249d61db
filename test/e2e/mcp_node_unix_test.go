//go:build unix

package e2e

import (
	"bufio"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// unaware starts a server that finds no word of a wire of its own, behind a
// launcher that prints.
var unaware = []string{"sh", "-c", `echo "<stray launcher at start>"
unset WIREGUARDRUN_IN WIREGUARDRUN_OUT WIREGUARDRUN_HANDOVER
exec "$@"`, "sh"}

// nodeLaunchers start the server with node, which closes descriptors.
var nodeLaunchers = map[string][]string{
	"npx":     {"npx", "-c", "node server.mjs"},
	"npm run": {"npm", "run", "start"},
}

// Behind what loses the wire, or says nothing of it, the server speaks on its
// standard output.
func TestNodeSDKServerLaunched(t *testing.T) {
	project := nodeServer(t)
	tools := without(nodeToolsShared, "print_answer")
	for _, tt := range []nodeSession{
		{"unmodified", []string{"--strict-ids"}, slices.Concat(unaware, nodeCommand), nodeToolsShared, []string{noiseOf("launcher", "at start")}},
		{"behind npx", nil, nodeLaunchers["npx"], tools, nil},
		{"behind npm run", nil, nodeLaunchers["npm run"], tools, []string{"> node server.mjs\n"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			tt.check(t, project)
		})
	}
}

func TestNodeSDKServerLostWire(t *testing.T) {
	project := nodeServer(t)
	for name, command := range nodeLaunchers {
		t.Run(name, func(t *testing.T) { checkLostWire(t, Options{Command: command, Dir: project}) })
	}
	for name, launcher := range wireLosers {
		t.Run(name, func(t *testing.T) {
			checkLostWire(t, Options{Command: slices.Concat(launcher, nodeCommand), Dir: project})
		})
	}
}

// wireLosers start a server that is told of a wire that it does not have, or
// that is not its.
var wireLosers = map[string][]string{
	"closed":   {"sh", "-c", `exec "$@" 3<&- 4>&-`, "sh"},
	"replaced": {"sh", "-c", `exec "$@" 3</dev/null 4>/dev/null`, "sh"},
	"one left": {"sh", "-c", `exec "$@" 4>/dev/null`, "sh"},
	// The server is behind a filter, and the wire is the launcher's.
	"filtered": {"sh", "-c", `cat | "$@"`, "sh"},
}

// checkLostWire checks that the server of an example, behind something that
// loses the wire, serves where the wire is too, and else says what is wrong.
func checkLostWire(t *testing.T, o Options) {
	t.Helper()
	o.Flags = []string{"--wire=auto"}
	s := start(t, o)
	initializeAndEnd(s)

	o.Flags = []string{"--wire=fds"}
	out, errOut, status := run(t, o, initialize)
	if out != "" || status != (Status{Code: 1}) || !strings.Contains(errOut, "the wire is lost: start ") {
		t.Errorf("without a wire: %v, standard output %q, standard error %q", status, out, errOut)
	}
}

func TestNodeSDKServerEndsOnSockets(t *testing.T) {
	project := nodeServer(t)
	for _, o := range []Options{
		{Flags: []string{"--wire=fds"}, Command: nodeCommand},
		{Flags: []string{"--wire=auto"}, Command: nodeCommand},
		{Flags: []string{"--wire=auto"}, Command: slices.Concat(unaware, nodeCommand)},
	} {
		o.Dir, o.Sockets = project, true
		checkNodeEnd(t, o)
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

	s := start(t, Options{Command: nodeCommand, Dir: project, Stdin: stdin, Stdout: stdout})
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
		o := Options{Command: nodeCommand, Dir: project, Stdin: in, Stdout: out}
		if bare {
			// Handed down by hand and on 3 and 4 only: what is on 0 to 2 node
			// itself puts back.
			null, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
			if err != nil {
				t.Fatal(err)
			}
			defer null.Close()
			o.Bare, o.Stdin, o.Stdout, o.Files = true, null, null, []*os.File{in, out}
			o.Env = []string{"WIREGUARDRUN_IN=3", "WIREGUARDRUN_OUT=4", fmt.Sprintf(
				"WIREGUARDRUN_HANDOVER=v1;mode=fds;in=3@%s;out=4@%s;stdin=%s;stdout=%s",
				identityOf(t, in), identityOf(t, out), identityOf(t, null), identityOf(t, null))}
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
