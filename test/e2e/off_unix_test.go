//go:build unix

package e2e

import (
	"os"
	"path/filepath"
	"testing"
)

// The command takes our place: process, descriptors, flags, signals.
func TestOffIsAnExec(t *testing.T) {
	f := createFile(t, filepath.Join(t.TempDir(), "inherited"))
	s := start(t, prepared(Options{
		Role: server, Files: []*os.File{f}, Env: []string{"WIREGUARDRUN_OFF=1"}, RoleArgs: []string{"", "\xff", "--"},
	}, "dup:3:9", "nonblock:2", "ignore:1"))
	r := askReport(s)
	if r.Pid != s.Pid() {
		t.Errorf("the server is process %d, and we were %d", r.Pid, s.Pid())
	}
	wantNumbers(t, r, 0, 1, 2, 3, 9)
	for n, f := range map[int]*os.File{0: s.stdin, 1: s.out.file, 2: s.err.file} {
		wantPipe(t, r, n, f)
	}
	for _, n := range []int{3, 9} {
		if got, want := r.file(n).ID, identityOf(t, f); got != want {
			t.Errorf("descriptor %d is %s, want ours, %s", n, got, want)
		}
	}
	for _, d := range r.Files {
		if d.NonBlock != (d.Number == 2) {
			t.Errorf("O_NONBLOCK of descriptor %d is %v", d.Number, d.NonBlock)
		}
	}
	if len(r.Ignored) != 1 || r.Ignored[0] != 1 {
		t.Errorf("ignored signals are %v, want only hangup", r.Ignored)
	}
	if len(r.Args) != 3 || string(r.Args[0])+"|"+string(r.Args[1])+"|"+string(r.Args[2]) != "|\xff|--" {
		t.Errorf("arguments are %q", r.Args)
	}
	finish(s)
}
