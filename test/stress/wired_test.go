//go:build linux

package stress

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"os"
	"os/exec"
	"testing"
	"time"
)

// wired is a session whose client is the test itself.
type wired struct {
	t   *testing.T
	cmd *exec.Cmd
	in  io.WriteCloser
	out *bufio.Reader
	err io.ReadCloser
}

// startWired starts a role of this binary as the server of a session.
func startWired(t *testing.T, role string, flags []string, env ...string) *wired {
	t.Helper()
	w := &wired{t: t}
	w.cmd = exec.Command(wireguardrun, append(flags, "--log-level=warn", "--", os.Args[0])...)
	w.cmd.Env = append(append(os.Environ(), roleEnv+"="+role), env...)
	var err error
	if w.in, err = w.cmd.StdinPipe(); err != nil {
		t.Fatal(err)
	}
	out, err := w.cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	w.out = bufio.NewReaderSize(out, 1<<20)
	if w.err, err = w.cmd.StderrPipe(); err != nil {
		t.Fatal(err)
	}
	if err := w.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	// A hang ends here instead of at the runner's limit, and takes no server
	// with it.
	limit := time.Minute
	if d, ok := t.Deadline(); ok {
		limit = time.Until(d) - time.Second
	}
	hang := time.AfterFunc(limit, func() { _ = w.cmd.Process.Kill() })
	t.Cleanup(func() {
		hang.Stop()
		_ = w.cmd.Process.Kill()
		_ = w.cmd.Wait()
	})
	return w
}

// end closes the server's input and waits for the end of the session.
func (w *wired) end() {
	w.t.Helper()
	_ = w.in.Close()
	if err := w.cmd.Wait(); err != nil {
		w.t.Errorf("the session ended with %v", err)
	}
}

func (w *wired) write(text string) {
	w.t.Helper()
	if _, err := io.WriteString(w.in, text); err != nil {
		w.t.Fatalf("write %.60q: %v", text, err)
	}
}

func (w *wired) read(want string) {
	w.t.Helper()
	got := make([]byte, len(want))
	if n, err := io.ReadFull(w.out, got); string(got[:n]) != want {
		w.t.Fatalf("read %.60q, %v, want %.60q", got[:n], err, want)
	}
}

// peak returns the most that was resident of the wrapper, in MiB.
func (w *wired) peak() float64 {
	w.t.Helper()
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", w.cmd.Process.Pid))
	if err != nil {
		w.t.Fatal(err)
	}
	_, rest, _ := bytes.Cut(status, []byte("VmHWM:"))
	var kB int
	if _, err := fmt.Sscan(string(rest), &kB); err != nil {
		w.t.Fatalf("VmHWM: %v", err)
	}
	return float64(kB) / 1024
}
