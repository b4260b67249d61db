//go:build unix

package e2e

import (
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
)

// A guard within a guard is one guard.
func TestNested(t *testing.T) {
	for _, kind := range []string{"pipe", "file", "wire"} {
		t.Run("stderr is a "+kind, func(t *testing.T) {
			dir := t.TempDir()
			argv, env := roleCommand(server)
			o := Options{
				Command: append([]string{wireguardrun, "--wire=fds", "--", wireguardrun, "--wire=fds", "--"}, argv...),
				Env:     env,
			}
			var s *session
			switch kind {
			case "file":
				o.StderrTo = createFile(t, filepath.Join(dir, "stderr"))
				s = start(t, o)
			case "pipe":
				s = start(t, o)
			case "wire":
				s = startMerged(t, o)
			}
			r := askReport(s)
			wantPipe(t, r, 3, s.stdin)
			wantPipe(t, r, 4, s.out.file)
			makeNoise(s)
			switch kind {
			case "file":
				wantFile(t, filepath.Join(dir, "stderr"), onBoth)
			case "pipe":
				wantStderr(s, onBoth)
			}
			wantNumbers(t, r, 0, 1, 2, 3, 4)
			want := fmt.Sprintf("v1;mode=fds;in=3@%s;out=4@%s;stdin=%s;stdout=%s",
				r.file(3).ID, r.file(4).ID, r.file(0).ID, r.file(1).ID)
			if got, _ := r.getenv("WIREGUARDRUN_HANDOVER"); got != want {
				t.Errorf("WIREGUARDRUN_HANDOVER is %s, want %s", got, want)
			}
		})
	}
}

// Status and signals come through all of them.
func TestNestedStatus(t *testing.T) {
	for script, want := range map[string]Status{
		"exit 7":        {Code: 7},
		"kill -KILL $$": {Signal: 9},
		"kill -TERM $$": {Signal: 15},
	} {
		t.Run(script, func(t *testing.T) {
			s := start(t, Options{Command: []string{wireguardrun, "--wire=fds", "--", "sh", "-c", script}})
			s.ExpectEnd()
			s.ExpectExit(want)
			wantStderr(s, "")
		})
	}
}

func TestNestedSignals(t *testing.T) {
	useRole(catcher)
	argv, env := roleCommand(server)
	s := start(t, Options{Command: append([]string{wireguardrun, "--wire=fds", "--"}, argv...), Env: env})
	order(s, "catch")
	for _, sig := range []syscall.Signal{unix.SIGTERM, unix.SIGHUP} {
		s.Signal(sig)
		wantCaught(s, sig, 1)
	}
	signalsAtEnd(s, unix.SIGTERM, unix.SIGHUP)
}

// A launcher that attaches, in a guard in a guard.
func TestNestedAttach(t *testing.T) {
	o := launcher(`echo banner; exec "$0" attach -- "$@"`, Options{})
	o.Command = append([]string{wireguardrun, "--wire=fds", "--"}, o.Command...)
	s := start(t, o)
	r := askReport(s)
	wantNumbers(t, r, 0, 1, 2)
	wantNoWord(t, r)
	finish(s)
	wantStderr(s, "banner\n")
}

// front is a server that starts a guarded server of its own, with pipes of its
// own, and hands on what comes. It keeps nothing from its child: the wire's
// descriptors and the word about them are inherited. It drops what its child
// prints.
var front = role("front", func() int {
	argv, env := roleCommand(server)
	cmd := exec.Command(os.Getenv("WGR_BINARY"), append([]string{"--wire=fds", "--"}, argv...)...)
	cmd.Env = append(os.Environ(), env...)
	in, out := os.NewFile(3, "wire in"), os.NewFile(4, "wire out")
	cmd.ExtraFiles = []*os.File{in, out}
	toChild, err := cmd.StdinPipe()
	if err != nil {
		panic(err)
	}
	fromChild, err := cmd.StdoutPipe()
	if err != nil {
		panic(err)
	}
	if err := cmd.Start(); err != nil {
		panic(err)
	}
	go func() {
		io.Copy(toChild, in)
		toChild.Close()
	}()
	io.Copy(out, fromChild)
	if err := cmd.Wait(); err != nil {
		fmt.Fprintf(os.Stderr, "front: %v\n", err)
		return 1
	}
	return 0
})

func TestServerOfAServer(t *testing.T) {
	useRole(server)
	s := start(t, Options{Role: front, Env: []string{"WGR_BINARY=" + wireguardrun}})
	r := askReport(s)
	wantNumbers(t, r, 0, 1, 2, 3, 4)
	outer := []string{identityOf(t, s.stdin), identityOf(t, s.out.file)}
	for n := range 5 {
		for _, id := range outer {
			if r.file(n).ID == id {
				t.Errorf("descriptor %d of the inner server is the outer client's wire", n)
			}
		}
	}
	want := fmt.Sprintf("v1;mode=fds;in=3@%s;out=4@%s;stdin=%s;stdout=%s",
		r.file(3).ID, r.file(4).ID, r.file(0).ID, r.file(1).ID)
	if got, _ := r.getenv("WIREGUARDRUN_HANDOVER"); got != want {
		t.Errorf("WIREGUARDRUN_HANDOVER is %s, want %s", got, want)
	}
	order(s, `out "stray\n"`)
	finish(s)
}
