package client

import (
	"os"
	"os/exec"
	"strconv"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/wireguardrun/wireguardrun/internal/pipes"
)

// Whoever has the other end is the client, and whoever has only the same one
// as we have passed it on.
func TestHoldsOtherEnd(t *testing.T) {
	self := os.Getpid()
	for _, test := range []struct {
		name         string
		socket       bool
		close        func(in, out *ends, t *testing.T)
		known, holds bool
	}{
		{"both", false, func(in, out *ends, t *testing.T) {}, true, true},
		{"its output", false, func(in, out *ends, t *testing.T) { closeOnce(t, &out.client) }, true, true},
		{"its input", false, func(in, out *ends, t *testing.T) { closeOnce(t, &in.client) }, true, true},
		{"none", false, func(in, out *ends, t *testing.T) { closeOnce(t, &in.client); closeOnce(t, &out.client) }, true, false},
		{"sockets of its making", true, func(in, out *ends, t *testing.T) {}, true, true},
	} {
		t.Run(test.name, func(t *testing.T) {
			in, out := pair(t, test.socket, true), pair(t, test.socket, false)
			test.close(in, out, t)
			known, holds := holdsOtherEnd(self, pipes.Handle(in.ours), pipes.Handle(out.ours))
			if known != test.known || holds != test.holds {
				t.Errorf("known %v, holds %v, want %v, %v", known, holds, test.known, test.holds)
			}
		})
	}
}

// A process that made no socket may have got one.
func TestHoldsSocketUnknown(t *testing.T) {
	cmd := exec.Command("cat")
	stdin, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	in, out := pair(t, true, true), pair(t, true, false)
	if known, holds := holdsOtherEnd(cmd.Process.Pid, pipes.Handle(in.ours), pipes.Handle(out.ours)); known || holds {
		t.Errorf("known %v, holds %v", known, holds)
	}
	_ = stdin.Close()
	if err := cmd.Wait(); err != nil {
		t.Error(err)
	}
	if known, holds := holdsOtherEnd(cmd.Process.Pid, pipes.Handle(in.ours), pipes.Handle(out.ours)); known || holds {
		t.Errorf("of a process that is gone: known %v, holds %v", known, holds)
	}
}

func TestAccessMode(t *testing.T) {
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = r.Close(); _ = w.Close() }()
	null, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = null.Close() }()
	for f, want := range map[*os.File]uint32{r: unix.O_RDONLY, w: unix.O_WRONLY, null: unix.O_RDWR} {
		if got := accessMode(os.Getpid(), strconv.Itoa(int(f.Fd()))); got != want {
			t.Errorf("%d, want %d", got, want)
		}
	}
	if got := accessMode(os.Getpid(), "99999"); got != unix.O_ACCMODE {
		t.Errorf("of no descriptor: %d", got)
	}
}

// Only the parent itself is watched, and only while it lives.
func TestParentEnd(t *testing.T) {
	if gone := parentEnd(0); gone != nil {
		t.Error("a parent that can't be seen is watched")
	}
	if gone := parentEnd(os.Getpid()); gone != nil {
		t.Error("who is not our parent is watched")
	}
	gone := parentEnd(os.Getppid())
	if gone == nil {
		if os.Getenv("CI") != "" {
			t.Fatal("the parent can't be watched")
		}
		t.Skip("the parent can't be watched here")
	}
	select {
	case <-gone:
		t.Error("the parent has ended")
	default:
	}
}
