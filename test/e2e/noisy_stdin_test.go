//go:build unix

package e2e

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"testing"
)

// lendingServer answers each request with its method. For "lend" it first
// starts a subprocess that has its standard input, and says so with a
// notification. Where the wire is there the subprocess reads one line and the
// server waits for its end: nobody else reads the wire then, so that what
// happens does not depend on who is faster. Elsewhere the subprocess reads to
// the end, and the server goes on at once.
//
// Its argument may be "unmodified": it does not take the wire that it is handed;
// or "waits": it always waits.
var lendingServer = role("lending-server", func() int {
	in, out := handedWire()
	if slices.Contains(os.Args, "unmodified") {
		in, out = os.Stdin, os.Stdout
	}
	script, waits := "cat", slices.Contains(os.Args, "waits")
	if in == os.Stdin {
		script, waits = `read -r line; echo "subprocess: read $line"`, true
	}
	lines := bufio.NewScanner(in)
	for lines.Scan() {
		var request struct {
			ID     int
			Method string
		}
		if err := json.Unmarshal(lines.Bytes(), &request); err != nil {
			panic(err)
		}
		if request.Method == "lend" {
			cmd := exec.Command("sh", "-c", script)
			cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stderr, os.Stderr
			if err := cmd.Start(); err != nil {
				panic(err)
			}
			fmt.Fprintln(out, ownMessage)
			if waits {
				cmd.Wait()
			} else {
				defer cmd.Wait()
			}
		}
		fmt.Fprintln(out, noisyAnswer(request.ID, request.Method))
	}
	return 0
})

// A subprocess that reads the server's standard input takes messages of the
// client's. Nothing that stands in front of a server which serves there can
// prevent that; one that takes the wire it is handed has nothing to lose there.
func TestSubprocessReadsStdin(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name  string
		o     Options
		taken bool
	}{
		{"bare", Options{Bare: true}, true},
		{"unmodified, stdio", Options{Flags: []string{"--wire=stdio"}}, true},
		{"unmodified, auto", Options{Flags: []string{"--wire=auto"}, RoleArgs: []string{"unmodified"}}, true},
		{"aware, auto", Options{Flags: []string{"--wire=auto"}}, false},
		{"aware, auto, at its end", Options{Flags: []string{"--wire=auto", "--stdin=null"}, RoleArgs: []string{"waits"}}, false},
		{"aware, fds", Options{Flags: []string{"--wire=fds"}, RoleArgs: []string{"waits"}}, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			tt.o.Role = lendingServer
			s := start(t, tt.o)
			ask := func(id int, method string) { s.Send(lineFrame(noisyRequest(id, method))) }
			answered := func(id int, method string) { s.ExpectLine(noisyAnswer(id, method)) }
			ask(1, "first")
			answered(1, "first")
			ask(2, "lend")
			s.ExpectLine(ownMessage)
			ask(3, "second")
			answered(2, "lend")
			if tt.taken {
				s.WaitStderr("subprocess: read " + noisyRequest(3, "second") + "\n")
			} else {
				answered(3, "second")
			}
			ask(4, "third")
			answered(4, "third")
			s.CloseStdin()
			s.ExpectEnd()
			s.ExpectExit(Status{})
		})
	}
}
