package pipes

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"testing"
	"unsafe"

	"golang.org/x/sys/unix"
)

// refuse makes a system call fail from now on, as sandboxes do.
func refuse(number uint32, with unix.Errno) error {
	filter := []unix.SockFilter{
		{Code: unix.BPF_LD | unix.BPF_W | unix.BPF_ABS, K: 0}, // the number
		{Code: unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K, K: number, Jf: 1},
		{Code: unix.BPF_RET | unix.BPF_K, K: unix.SECCOMP_RET_ERRNO | uint32(with)},
		{Code: unix.BPF_RET | unix.BPF_K, K: unix.SECCOMP_RET_ALLOW},
	}
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		return err
	}
	program := unix.SockFprog{Len: uint16(len(filter)), Filter: &filter[0]}
	_, _, errno := unix.Syscall(unix.SYS_SECCOMP, unix.SECCOMP_SET_MODE_FILTER,
		unix.SECCOMP_FILTER_FLAG_TSYNC, uintptr(unsafe.Pointer(&program)))
	runtime.KeepAlive(filter)
	if errno != 0 {
		return errno
	}
	return nil
}

func init() {
	roles["no kcmp"] = func() error {
		dir, err := os.MkdirTemp("", "pipes")
		if err != nil {
			return err
		}
		defer func() { _ = os.RemoveAll(dir) }()
		path := filepath.Join(dir, "file")
		a, err := os.Create(path)
		if err != nil {
			return err
		}
		b, err := os.Open(path)
		if err != nil {
			return err
		}
		file, second := Handle(a.Fd()), Handle(b.Fd())
		d, err := Duplicate(file)
		if err != nil {
			return err
		}
		null, err := OpenNull()
		if err != nil {
			return err
		}
		if err := refuse(unix.SYS_KCMP, unix.EPERM); err != nil {
			return err
		}
		for name, c := range map[string]struct {
			h    Handle
			want Verdict
		}{"duplicate": {d, Alike}, "second opening": {second, Alike}, "another file": {null, Different}, "not open": {gone, Different}} {
			if got := Compare(file, c.h); got != c.want {
				return fmt.Errorf("%s: %s, want %s", name, got, c.want)
			}
		}
		return nil
	}
	for name, errno := range map[string]unix.Errno{"unknown": unix.ENOSYS, "refused": unix.EPERM} {
		roles["pwritev2 "+name] = func() error {
			if err := refuse(unix.SYS_PWRITEV2, errno); err != nil {
				return err
			}
			r, w, err := Pipe()
			if err != nil {
				return err
			}
			read := make(chan int)
			go func() { all, _ := io.ReadAll(NewConn(r)); read <- len(all) }()
			const size = 1 << 20
			n, err := NewConn(w).Write(make([]byte, size))
			err = errors.Join(err, Close(w))
			if got := <-read; err != nil || n != size || got != size {
				return fmt.Errorf("wrote %d, of which %d arrived, %w", n, got, err)
			}
			return nil
		}
	}
}

func TestCompareWithoutKcmp(t *testing.T) { play(t, "no kcmp", "", nil) }

func TestWriteWithoutNowait(t *testing.T) {
	for _, role := range []string{"pwritev2 unknown", "pwritev2 refused"} {
		t.Run(role, func(t *testing.T) { play(t, role, "", nil) })
	}
}

// Go's runtime interrupts system calls with signals of its own.
func TestReadSurvivesSignals(t *testing.T) {
	e := newEnds(t)
	thread := make(chan int, 1)
	read := make(chan error, 1)
	go func() {
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		thread <- unix.Gettid()
		_, err := newConn(t, e.r).Read(make([]byte, 1))
		read <- err
	}()
	tid := <-thread
	untilBlocked("readHandle")
	for range 10 {
		untilAsleep(t, tid)
		if err := unix.Tgkill(os.Getpid(), tid, unix.SIGURG); err != nil {
			t.Fatal(err)
		}
	}
	if n, err := newConn(t, e.w).Write([]byte("x")); n != 1 || err != nil {
		t.Errorf("wrote %d, %v", n, err)
	}
	if err := <-read; err != nil {
		t.Errorf("the read that signals have interrupted gave %v", err)
	}
}

// untilAsleep waits until a thread of this process waits in the kernel.
func untilAsleep(t *testing.T, tid int) {
	for {
		stat, err := os.ReadFile(fmt.Sprintf("/proc/self/task/%d/stat", tid))
		if err != nil {
			t.Fatal(err)
		}
		if _, state, _ := bytes.Cut(stat, []byte(") ")); state[0] == 'S' {
			return
		}
		runtime.Gosched()
	}
}
