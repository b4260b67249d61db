//go:build unix

package e2e

import (
	"bufio"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"runtime"
	"slices"
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

// What an aware server prints before it has read anything is stray, in a protocol
// that is not known too: what it reads then shows that it is one.
func TestAwareServerPrintsFirst(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("only on Linux is it seen what has been read of a pipe that is closed")
	}
	for range 5 {
		s := start(t, Options{
			Flags:   []string{"--wire=auto"},
			Command: []string{"sh", "-c", `echo stray; read x <&3; echo "got $x" >&4`},
		})
		s.Send("hello\n")
		s.CloseStdin()
		s.Expect("got hello\n")
		s.ExpectEnd()
		s.ExpectExit(Status{})
		if err := s.Stderr(); !strings.Contains(err, "\nstray\n") {
			t.Errorf("standard error has %q", err)
		}
	}
}

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

// twoPrinter prints text on its standard output and on the extra descriptor,
// which its arguments name by 1 and 4, and then answers a ping.
var twoPrinter = role("two-printer", func() int {
	_, extra := handedWire()
	for _, arg := range os.Args[1:] {
		if text, ok := strings.CutPrefix(arg, "4:"); ok {
			_, _ = io.WriteString(extra, text)
		} else {
			fmt.Print(strings.TrimPrefix(arg, "1:"))
		}
	}
	_, _ = bufio.NewReader(os.Stdin).ReadString('\n')
	fmt.Print(pong)
	return 0
})

// What is printed on the extra descriptor, and is no message, is told from what
// is printed on standard output: no line has something of both.
func TestStrayOutputIsToldBySource(t *testing.T) {
	path := filepath.Join(t.TempDir(), "summary")
	flags := []string{"--wire=auto", "--stray=log", "--log-format=json", "--summary=" + path}
	s := start(t, Options{Flags: flags, Role: twoPrinter, RoleArgs: []string{"1:half", "4:lo", "1: line\n", "4:st\n"}})
	s.Send(ping)
	s.Expect(pong)
	s.ExpectEnd()
	s.ExpectExit(Status{})
	got := strayLines(t, s)
	slices.Sort(got)
	if want := []string{"extra: lost", "stdout: half line"}; !slices.Equal(got, want) {
		t.Errorf("the log has %q, want %q:\n%s", got, want, s.Stderr())
	}
	want := map[string]struct{ Bytes, Lines int64 }{"stdout": {10, 1}, "extra": {5, 1}}
	if got := readSummary(t, path).Stray; !maps.Equal(got, want) {
		t.Errorf("the summary has %v, want %v", got, want)
	}
}

func TestStrayOutputOnTheExtraPairIsTold(t *testing.T) {
	s := start(t, Options{Flags: []string{"--wire=auto"}, Role: twoPrinter, RoleArgs: []string{"4:lost\n"}})
	s.Send(ping)
	s.Expect(pong)
	s.ExpectEnd()
	s.ExpectExit(Status{})
	for _, want := range []string{"descriptor WIREGUARDRUN_OUT has more than messages", "stray_lines=1 stray_bytes=5\n"} {
		if !strings.Contains(s.Stderr(), want) {
			t.Errorf("standard error has\n%s\nwhich lacks %q", s.Stderr(), want)
		}
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
