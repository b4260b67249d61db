//go:build unix

package e2e

import (
	"bufio"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// slowServer answers what it has been asked only after the end of its input,
// and when the file that its argument names is there.
var slowServer = role("slow-server", func() int {
	in, out := handedWire()
	var asked []string
	lines := bufio.NewScanner(in)
	for lines.Scan() {
		asked = append(asked, lines.Text())
	}
	fmt.Fprintln(os.Stderr, "slow server: end of the input")
	awaitFile(os.Args[1])
	for _, line := range asked {
		fmt.Fprintln(out, "answer to", line)
	}
	return 3
})

// The end of the input is not the client's: whoever has written all requests
// in advance gets all answers, however long they take.
func TestEOFIsNotDeath(t *testing.T) {
	t.Parallel()
	requests := filepath.Join(t.TempDir(), "requests")
	writeFile(t, requests, "one\ntwo\n")
	all := "answer to one\nanswer to two\n"
	cases := map[string]func() func(){}
	for name, test := range map[string]struct {
		stdin   string // a file; "" is a pipe that ends
		sockets bool
		flags   []string
		want    string
	}{
		"pipe":                   {"", false, nil, all},
		"socket":                 {"", true, nil, all},
		"file":                   {requests, false, nil, all},
		"null device":            {os.DevNull, false, nil, ""},
		"a limit that is far":    {"", false, []string{"--eof-timeout=1h"}, all},
		"a short grace to stop":  {"", false, []string{"--stop-timeout=1ms"}, all},
		"nobody ends with us":    {"", false, []string{"--keeper=no"}, all},
		"our parent is no sign":  {"", false, []string{"--watch-parent=no"}, all},
		"with a lifeline in it":  {"", false, []string{"--stdin=lifeline"}, all},
		"stray output elsewhere": {"", false, []string{"--stray=null"}, all},
	} {
		cases[name] = func() func() {
			path := filepath.Join(t.TempDir(), "go on")
			o := Options{Flags: test.flags, Role: slowServer, RoleArgs: []string{path}, Sockets: test.sockets}
			if test.stdin != "" {
				f, err := os.Open(test.stdin)
				if err != nil {
					t.Fatal(err)
				}
				defer f.Close()
				o.Stdin = f
			}
			s := start(t, o)
			if test.stdin == "" {
				s.Send("one\ntwo\n")
				if test.sockets {
					// Only the writing side, as shutdown does.
					onDescriptor(t, s.stdin, func(fd int) error { return unix.Shutdown(fd, unix.SHUT_WR) })
				} else {
					s.CloseStdin()
				}
			}
			s.WaitStderr("slow server: end of the input\n")
			return func() {
				writeFile(t, path, "")
				s.Expect(test.want)
				s.ExpectEnd()
				s.ExpectExit(Status{Code: 3})
				wantStderr(s, "slow server: end of the input\n")
			}
		}
	}
	meanwhile(t, cases)
}

// What never had an input lives on without one.
func TestNoInputFromTheStart(t *testing.T) {
	t.Parallel()
	cases := map[string]func() func(){}
	for name, prefix := range map[string][]string{
		"closed":      {"sh", "-c", `exec "$0" "$@" <&-`},
		"null device": {"sh", "-c", `exec "$0" "$@" </dev/null`},
		"empty pipe":  {"sh", "-c", `: | "$0" "$@"`},
	} {
		cases[name] = func() func() {
			path := filepath.Join(t.TempDir(), "go on")
			s := start(t, Options{Role: slowServer, RoleArgs: []string{path}, Prefix: prefix})
			s.WaitStderr("slow server: end of the input\n")
			return func() {
				writeFile(t, path, "")
				s.ExpectEnd()
				s.ExpectExit(Status{Code: 3})
			}
		}
	}
	meanwhile(t, cases)
}

// The limit that one may set: the server is asked to end, and made to if need
// be.
func TestEOFTimeout(t *testing.T) {
	for name, test := range map[string]struct {
		args []string
		want Status
	}{
		"asked":  {[]string{"eof:stay"}, Status{Signal: unix.SIGTERM}},
		"made":   {[]string{"eof:stay", "term:stay"}, Status{Signal: unix.SIGKILL}},
		"heeded": {[]string{"eof:7"}, Status{Code: 7}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := startFamily(t, Options{Flags: []string{"--eof-timeout=200ms", "--stop-timeout=200ms"}, RoleArgs: test.args}, "group")
			f.ExpectLine("ready")
			f.Send("echo before\n")
			f.ExpectLine("before")
			f.CloseStdin()
			f.ExpectEnd()
			f.ExpectExit(test.want)
			f.allGone()
			if test.want.Signal != 0 {
				f.WaitStderr("after the end of its input: it is asked to end  after=200ms\n")
			}
		})
	}
}

// No limit counts while the input is open.
func TestEOFTimeoutNotBefore(t *testing.T) {
	t.Parallel()
	s := start(t, Options{Role: living, RoleArgs: []string{"eof:stay"}, Flags: []string{"--eof-timeout=1ms"}})
	s.ExpectLine("ready")
	for range 20 {
		time.Sleep(5 * time.Millisecond)
		s.Send("echo on\n")
		s.ExpectLine("on")
	}
	s.CloseStdin()
	s.ExpectExit(Status{Signal: unix.SIGTERM})
}
