//go:build unix

package e2e

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"
)

// awareServer serves on the extra descriptors, and logs each reply on its
// standard output before it sends it.
var awareServer = role("aware-server", func() int {
	in, out := handedWire()
	for lines := bufio.NewScanner(in); lines.Scan(); {
		fmt.Print(strings.Replace(pong, "{}", `"logged"`, 1))
		if _, err := io.WriteString(out, pong); err != nil {
			return brokenWire
		}
	}
	return 0
})

// behindGuards puts guards around a role. All have the default flags.
func behindGuards(guards int, name string) Options {
	argv, env := roleCommand(name)
	var command []string
	for range guards {
		command = append(command, wireguardrun, "--")
	}
	return Options{Bare: true, Command: append(command, argv...), Env: env}
}

// pingThrice is a whole session.
func pingThrice(s *session) {
	for range 3 {
		s.Send(ping)
		s.Expect(pong)
	}
	s.CloseStdin()
	s.ExpectEnd()
	s.ExpectExit(Status{})
}

// By one and the same command an aware server has its descriptors.
func TestAwareServerByDefault(t *testing.T) {
	for _, guards := range []int{1, 2} {
		t.Run(fmt.Sprintf("%d guards", guards), func(t *testing.T) {
			s := start(t, behindGuards(guards, awareServer))
			pingThrice(s)
		})
	}
}

// The client's input may end before the server has said anything.
func TestAwareServerOneShot(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("elsewhere a pipe does not tell, once its writer is gone, whether it was read")
	}
	for range 10 {
		s := start(t, behindGuards(1, awareServer))
		s.Send(ping)
		s.CloseStdin()
		s.Expect(pong)
		s.ExpectEnd()
		s.ExpectExit(Status{})
	}
}

// plainServer answers each line, on its standard output.
var plainServer = role("plain-server", func() int {
	fmt.Println("plain server")
	for lines := bufio.NewScanner(os.Stdin); lines.Scan(); {
		fmt.Print("request ", lines.Text(), "\n", pong)
	}
	return 0
})

func TestUnmodifiedServerByDefault(t *testing.T) {
	for _, guards := range []int{1, 2, 3} {
		t.Run(fmt.Sprintf("%d guards", guards), func(t *testing.T) {
			s := start(t, behindGuards(guards, plainServer))
			pingThrice(s)
			if !strings.Contains(s.Stderr(), "plain server\nrequest "+ping) {
				t.Errorf("standard error has\n%s", s.Stderr())
			}
		})
	}
}

// attach is the announcement and the end of all doubt.
func TestAttachByDefault(t *testing.T) {
	o := behindGuards(1, plainServer)
	argv := o.Command[2:]
	o.Command = append([]string{wireguardrun, "--", "sh", "-c", `echo banner; exec "$0" attach -- "$@"`, wireguardrun}, argv...)
	s := start(t, o)
	s.Expect("plain server\n") // all that it prints is on the wire
	s.Send(ping)
	s.Expect("request " + ping + pong)
	s.CloseStdin()
	s.ExpectEnd()
	s.ExpectExit(Status{})
}

// A launcher may end before the server that it has started. The session is the
// server's, in every mode.
func TestLauncherLeavesItsServerBehind(t *testing.T) {
	argv, env := roleCommand(plainServer)
	for _, mode := range []string{"auto", "stdio"} {
		t.Run(mode, func(t *testing.T) {
			s := start(t, Options{
				Flags: []string{"--wire=" + mode}, Env: env,
				Command: append([]string{"sh", "-c", `exec 5<&0; "$0" "$@" <&5 & echo left >&2`}, argv...),
			})
			s.WaitStderr("left\n")
			s.WaitStderr("plain server\n")
			pingThrice(s)
		})
	}
}

// The end of a file is the end of the input too.
func TestEOFTimeoutOfAFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "in")
	writeFile(t, path, ping)
	in, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer in.Close()
	s := start(t, Options{
		Flags: []string{"--wire=auto", "--eof-timeout=10ms"}, Stdin: in,
		Command: []string{"sh", "-c", "cat >/dev/null; exec sleep 300"},
	})
	s.ExpectEnd()
	s.ExpectExit(Status{Signal: syscall.SIGTERM})
}
