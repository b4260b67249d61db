package client

import (
	"os"
	"os/exec"
	"testing"
	"time"

	"github.com/wireguardrun/wireguardrun/internal/pipes"
)

// ends are the two of a pipe: ours, as Watch gets it, and the client's.
type ends struct{ ours, client pipes.Handle }

func pipeEnds(t *testing.T, weRead bool) *ends {
	t.Helper()
	r, w, err := pipes.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	// Ours stays open: the watching ends with the process.
	e := &ends{r, w}
	if !weRead {
		e = &ends{w, r}
	}
	t.Cleanup(func() { e.leave(t) })
	return e
}

// leave closes the client's end, once.
func (e *ends) leave(t *testing.T) {
	t.Helper()
	if e.client == pipes.None {
		return
	}
	if err := pipes.Close(e.client); err != nil {
		t.Error(err)
	}
	e.client = pipes.None
}

func watched(in, out *ends) (<-chan Sign, Options) {
	o := Options{In: in.ours, Out: out.ours, Activity: func() uint64 { return 0 }}
	return Watch(o), o
}

func expect(t *testing.T, signs <-chan Sign, want Sign) {
	t.Helper()
	end := time.Minute
	if deadline, ok := t.Deadline(); ok {
		end = min(end, time.Until(deadline)*9/10)
	}
	select {
	case got := <-signs:
		if got != want {
			t.Fatalf("%v, want %v", got, want)
		}
	case <-time.After(end):
		t.Fatalf("no sign that %v", want)
	}
}

func expectNone(t *testing.T, signs <-chan Sign) {
	t.Helper()
	select {
	case got := <-signs:
		t.Fatalf("%v, want no sign", got)
	case <-time.After(3 * lookAgain):
	}
}

func TestSigns(t *testing.T) {
	t.Run("writer first", func(t *testing.T) {
		t.Parallel()
		in, out := pipeEnds(t, true), pipeEnds(t, false)
		signs, o := watched(in, out)
		c := pipes.NewConn(in.client)
		if _, err := c.Write([]byte("unread")); err != nil {
			t.Fatal(err)
		}
		expectNone(t, signs)
		in.leave(t)
		expect(t, signs, InputEnded) // although bytes wait
		if Gone(o.In, o.Out) {
			t.Error("gone, and there is a reader")
		}
		expectNone(t, signs)
		out.leave(t)
		expect(t, signs, NoReader)
		for !Gone(o.In, o.Out) { // what takes long counts as no
			if d, ok := t.Deadline(); ok && time.Until(d) < time.Second {
				t.Fatal("both ends are closed, and it is not gone")
			}
		}
		expectNone(t, signs) // once each
		// Looking at a pipe takes nothing out of it.
		buf := make([]byte, 9)
		if n, err := pipes.NewConn(o.In).Read(buf); string(buf[:n]) != "unread" || err != nil {
			t.Errorf("read %q, %v", buf[:n], err)
		}
	})
	t.Run("reader first", func(t *testing.T) {
		t.Parallel()
		in, out := pipeEnds(t, true), pipeEnds(t, false)
		signs, o := watched(in, out)
		out.leave(t)
		if Gone(o.In, o.Out) {
			t.Error("gone, and there is a writer")
		}
		expect(t, signs, NoReader) // after the silence
		in.leave(t)
		expect(t, signs, InputEnded)
	})
}

// The server, or the relay, reads and writes while the client is watched.
func TestSignsWhileInUse(t *testing.T) {
	in, out := pipeEnds(t, true), pipeEnds(t, false)
	read := make(chan error, 1)
	go func() {
		_, err := pipes.NewConn(in.ours).Read(make([]byte, 9))
		read <- err
	}()
	signs, o := watched(in, out)
	if Gone(o.In, o.Out) || Going(o.In, o.Out) {
		t.Error("gone, and both ends are open")
	}
	in.leave(t)
	expect(t, signs, InputEnded)
	<-read
	out.leave(t)
	expect(t, signs, NoReader)
}

func TestNoPipe(t *testing.T) {
	null, err := pipes.OpenNull()
	if err != nil {
		t.Fatal(err)
	}
	f, err := os.Create(t.TempDir() + "/file")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = f.Close(); _ = pipes.Close(null) }()
	for name, h := range map[string]pipes.Handle{"null device": null, "file": pipes.Handle(f.Fd()), "nothing": pipes.None} {
		if waitWritersGone(h) || readersGone(h) {
			t.Errorf("%s: nobody can be gone from there", name)
		}
	}
}

// Whoever made the pipes is the client, and whoever only inherited them has
// passed them on.
func TestHoldsOtherEnd(t *testing.T) {
	in, out := pipeEnds(t, true), pipeEnds(t, false)
	null, err := pipes.OpenNull()
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = pipes.Close(null) }()
	for _, test := range []struct {
		name         string
		pid          int
		in, out      pipes.Handle
		known, holds bool
	}{
		{"the maker", os.Getpid(), in.ours, out.ours, true, true},
		{"the maker of the input", os.Getpid(), in.ours, null, true, true},
		{"somebody else", os.Getpid() + 1, in.ours, out.ours, true, false},
		{"no pipes", os.Getpid(), null, null, false, false},
	} {
		known, holds := holdsOtherEnd(test.pid, test.in, test.out)
		if known != test.known || holds != test.holds {
			t.Errorf("%s: known %v, holds %v, want %v, %v", test.name, known, holds, test.known, test.holds)
		}
	}
}

// A process that is younger than we are is not our parent: it has got the
// number of one that is gone.
func TestYoungerParent(t *testing.T) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	child := exec.Command(self, "-test.run=^$")
	if err := child.Start(); err != nil {
		t.Fatal(err)
	}
	if parentEnd(child.Process.Pid) != nil {
		t.Error("a younger process is watched as our parent")
	}
	if err := child.Wait(); err != nil {
		t.Error(err)
	}
	if parentEnd(os.Getpid()) == nil {
		t.Error("a process that is not younger is not watched")
	}
}

// A file has ended once somebody has read it all.
func TestFile(t *testing.T) {
	f, err := os.Create(t.TempDir() + "/file")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = f.Close() }()
	if _, err := f.WriteAt([]byte("requests"), 0); err != nil {
		t.Fatal(err)
	}
	h := pipes.Handle(f.Fd())
	if read, known := isFileRead(h); read || !known {
		t.Errorf("nothing is read: read %v, known %v", read, known)
	}
	if _, err := f.Read(make([]byte, 8)); err != nil {
		t.Fatal(err)
	}
	if !waitFileRead(h) {
		t.Error("all is read")
	}
}
