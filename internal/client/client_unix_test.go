//go:build unix

package client

import (
	"os"
	"path/filepath"
	"runtime"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/wireguardrun/wireguardrun/internal/pipes"
)

func limit(t *testing.T) <-chan time.Time {
	end := time.Minute
	if d, ok := t.Deadline(); ok {
		end = min(end, time.Until(d)*9/10)
	}
	return time.After(end)
}

// ends are the two of a connection: ours, as Watch gets it, and the client's.
type ends struct{ ours, client int }

func closeOnce(t *testing.T, fd *int) {
	t.Helper()
	if *fd >= 0 {
		if err := unix.Close(*fd); err != nil {
			t.Fatal(err)
		}
		*fd = -1
	}
}

func pair(t *testing.T, socket, weRead bool) *ends {
	t.Helper()
	var fds [2]int
	var err error
	if socket {
		fds, err = unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM, 0)
	} else if err = unix.Pipe(fds[:]); !weRead {
		fds[0], fds[1] = fds[1], fds[0]
	}
	if err != nil {
		t.Fatal(err)
	}
	// Ours stays open: the watching ends with the process.
	e := &ends{fds[0], fds[1]}
	t.Cleanup(func() { closeOnce(t, &e.client) })
	return e
}

func watchPair(in, out *ends) (<-chan Sign, Options) {
	o := Options{In: pipes.Handle(in.ours), Out: pipes.Handle(out.ours)}
	o.Activity = func() uint64 {
		n, _ := pipes.Unread(o.In)
		return uint64(n)
	}
	return Watch(o), o
}

func wantSign(t *testing.T, signs <-chan Sign, want Sign) {
	t.Helper()
	select {
	case got := <-signs:
		if got != want {
			t.Fatalf("%v, want %v", got, want)
		}
	case <-limit(t):
		t.Fatalf("no sign that %v", want)
	}
}

func wantNone(t *testing.T, signs <-chan Sign, d time.Duration) {
	t.Helper()
	select {
	case got := <-signs:
		t.Fatalf("%v, want no sign", got)
	case <-time.After(d):
	}
}

// One after the other, in both orders.
func TestSigns(t *testing.T) {
	for _, socket := range []bool{false, true} {
		t.Run(map[bool]string{false: "pipes", true: "sockets"}[socket], func(t *testing.T) {
			t.Parallel()
			in, out := pair(t, socket, true), pair(t, socket, false)
			signs, o := watchPair(in, out)
			wantNone(t, signs, 20*time.Millisecond)
			if _, err := unix.Write(in.client, []byte("unread")); err != nil {
				t.Fatal(err)
			}
			closeOnce(t, &in.client)
			wantSign(t, signs, InputEnded) // although bytes wait
			if Gone(o.In, o.Out) {
				t.Error("gone, and there is a reader")
			}
			wantNone(t, signs, 100*time.Millisecond)
			closeOnce(t, &out.client)
			wantSign(t, signs, NoReader)
			if !Gone(o.In, o.Out) {
				t.Error("both ends are closed, and it is not gone")
			}
			wantNone(t, signs, 20*time.Millisecond) // once each
		})
		t.Run("reader first", func(t *testing.T) {
			t.Parallel()
			in, out := pair(t, socket, true), pair(t, socket, false)
			signs, o := watchPair(in, out)
			closeOnce(t, &out.client)
			if Gone(o.In, o.Out) {
				t.Error("gone, and there is a writer")
			}
			wantSign(t, signs, NoReader) // after the silence
			closeOnce(t, &in.client)
			wantSign(t, signs, InputEnded)
		})
	}
}

// One socket for both directions, of which the client ends one.
func TestHalfClosedSocket(t *testing.T) {
	both := pair(t, true, true)
	signs, o := watchPair(both, both)
	if err := unix.Shutdown(both.client, unix.SHUT_WR); err != nil {
		t.Fatal(err)
	}
	wantSign(t, signs, InputEnded)
	wantNone(t, signs, 20*time.Millisecond)
	if Gone(o.In, o.Out) {
		t.Error("gone, and it still reads")
	}
	closeOnce(t, &both.client)
	wantSign(t, signs, NoReader)
}

// What is read elsewhere as soon as it is written is seen too.
func TestSilence(t *testing.T) {
	t.Parallel()
	in, out := pair(t, false, true), pair(t, false, false)
	o := Options{In: pipes.Handle(in.ours), Out: pipes.Handle(out.ours), Activity: func() uint64 { return 0 }}
	probe := watchActivity(o.In)
	if _, err := unix.Write(in.client, []byte("x")); err != nil {
		t.Fatal(err)
	}
	if probe.seen() == 0 {
		if runtime.GOOS == "linux" && os.Getenv("CI") != "" {
			t.Fatal("what is read elsewhere can't be seen")
		}
		t.Skip("that can't be seen here")
	}
	probe.close()
	signs := Watch(o)
	closeOnce(t, &out.client)
	for end := time.Now().Add(silence * 3 / 2); time.Now().Before(end); {
		if _, err := unix.Write(in.client, []byte("x")); err != nil {
			t.Fatal(err)
		}
		if _, err := unix.Read(in.ours, make([]byte, 1)); err != nil {
			t.Fatal(err)
		}
		wantNone(t, signs, 20*time.Millisecond)
	}
	wantSign(t, signs, NoReader)
}

// A file has no reader to lose. It has ended once somebody has read it all.
func TestFile(t *testing.T) {
	f, err := os.Create(filepath.Join(t.TempDir(), "f"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = f.Close() })
	if _, err := f.WriteAt([]byte("requests"), 0); err != nil {
		t.Fatal(err)
	}
	h := pipes.Handle(f.Fd())
	signs := Watch(Options{In: h, Out: h, Activity: func() uint64 { return 0 }})
	wantNone(t, signs, 2*lookAtFile)
	if _, err := f.Read(make([]byte, 8)); err != nil {
		t.Fatal(err)
	}
	wantSign(t, signs, InputEnded)
	wantNone(t, signs, 50*time.Millisecond)
	if Gone(h, h) {
		t.Error("a file is gone")
	}
}

// The null device has ended from the start, and takes all.
func TestNullDevice(t *testing.T) {
	f, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = f.Close() })
	h := pipes.Handle(f.Fd())
	signs := Watch(Options{In: h, Out: h, Activity: func() uint64 { return 0 }})
	wantSign(t, signs, InputEnded)
	wantNone(t, signs, 50*time.Millisecond)
}

func TestIsNamed(t *testing.T) {
	path := filepath.Join(t.TempDir(), "fifo")
	if err := unix.Mkfifo(path, 0o600); err != nil {
		t.Fatal(err)
	}
	fifo, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = fifo.Close() })
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = r.Close(); _ = w.Close() })
	for name, test := range map[string]struct {
		f    *os.File
		want bool
	}{"fifo": {fifo, true}, "pipe": {w, false}} {
		if got := isNamed(pipes.Handle(test.f.Fd())); got != test.want {
			t.Errorf("%s: %v, want %v", name, got, test.want)
		}
	}
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	if isNamed(pipes.Handle(fifo.Fd())) {
		t.Error("a name that nobody can open any more counts")
	}
}
