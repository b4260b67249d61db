package client

import (
	"os"
	"os/exec"
	"strconv"
	"testing"
	"time"

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

// Where the system has no descriptors of processes, or there is none left, we
// look ourselves.
func TestParentEndByLooking(t *testing.T) {
	var before unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &before); err != nil {
		t.Fatal(err)
	}
	none := before
	none.Cur = 0
	if err := unix.Setrlimit(unix.RLIMIT_NOFILE, &none); err != nil {
		t.Fatal(err)
	}
	gone := parentEnd(os.Getppid())
	if err := unix.Setrlimit(unix.RLIMIT_NOFILE, &before); err != nil {
		t.Fatal(err)
	}
	if gone == nil {
		t.Fatal("the parent is not watched")
	}
	wait := time.NewTimer(2 * lookForParent)
	select {
	case <-gone:
		t.Error("the parent has ended")
	case <-wait.C:
	}
	waitParentChanges(os.Getpid()) // who is not our parent has ended
}

// A watch does not cost a thread.
func TestNoThreads(t *testing.T) {
	threads := func() int {
		list, err := os.ReadDir("/proc/self/task")
		if err != nil {
			t.Fatal(err)
		}
		return len(list)
	}
	const watches = 50
	before := threads()
	for range watches {
		p := pair(t, false, false)
		ends := make(chan bool, 1)
		go func() { ends <- waitReadersGone(pipes.Handle(p.ours)) }()
		t.Cleanup(func() {
			closeOnce(t, &p.client)
			if !<-ends {
				t.Error("the end of a reader was not seen")
			}
		})
	}
	time.Sleep(50 * time.Millisecond)
	if now := threads(); now-before >= watches {
		t.Errorf("%d threads more for %d watches", now-before, watches)
	}
}
