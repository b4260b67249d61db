package e2e

import (
	"bufio"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// A launcher script that knows of wireguardrun puts the wire back for the
// server that it starts, which knows of nothing.
func TestAttach(t *testing.T) {
	for _, wire := range []string{"fds", "auto"} {
		argv, env := roleCommand(speaker)
		script := filepath.Join(t.TempDir(), "launcher.cmd")
		writeFile(t, script, fmt.Sprintf("@echo off\r\necho banner\r\n\"%s\" attach -- \"%s\"\r\necho after\r\nexit 9\r\n", wireguardrun, argv[0]))
		s := start(t, Options{Flags: []string{"--wire=" + wire, "--log-level=off"}, Command: []string{script}, Env: env})
		s.Send(ping)
		s.Expect(pong)
		s.CloseStdin()
		s.ExpectEnd()
		s.ExpectExit(Status{Code: 9})
		wantStderr(s, "banner\r\nafter\r\n")
	}
}

// speaker prints its arguments, if it has any, for each message, and answers it
// on the wire, be that the handed-down pair or standard input and output.
var speaker = role("speaker", func() int {
	in, out := handedWire()
	for lines := bufio.NewScanner(in); lines.Scan(); {
		if len(os.Args) > 1 {
			fmt.Println(strings.Join(os.Args[1:], "|"))
		}
		fmt.Fprint(out, pong)
	}
	return 0
})

// A guard within a guard takes the wire that it was handed, or has it on its
// standard handles.
func TestNested(t *testing.T) {
	for _, outer := range []string{"fds", "auto", "stdio"} {
		for _, inner := range []string{"fds", "auto", "stdio"} {
			t.Run(outer+" "+inner, func(t *testing.T) {
				t.Parallel()
				argv, env := roleCommand(speaker, "noise")
				s := start(t, Options{
					Flags:   []string{"--log-level=off", "--wire=" + outer},
					Command: append([]string{wireguardrun, "--log-level=off", "--wire=" + inner, "--"}, argv...), Env: env,
				})
				s.Send(ping)
				s.Expect(pong)
				finish(s)
				wantStderr(s, "noise\n")
			})
		}
	}
}
