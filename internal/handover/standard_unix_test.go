//go:build unix

package handover

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/wireguardrun/wireguardrun/internal/pipes"
)

const roleVariable = "HANDOVER_TEST_ROLE"

// TestMain is also the child that puts the wire back on its 0 and 1.
func TestMain(m *testing.M) {
	if os.Getenv(roleVariable) == "" {
		os.Exit(m.Run())
	}
	if err := putBack(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func putBack() error {
	r := Record{In: End{Number: 3, Handle: 3}, Out: End{Number: 4, Handle: 4}}
	var err error
	if r.In.ID, err = pipes.Identify(3); err != nil {
		return err
	}
	if r.Out.ID, err = pipes.Identify(4); err != nil {
		return err
	}
	if err := r.PutOnStandard(); err != nil {
		return err
	}
	if !r.In.ID.Is(0) || !r.Out.ID.Is(1) || r.PairHolds() {
		return errors.New("the wire is not on 0 and 1, or still on 3 and 4")
	}
	if _, err := io.Copy(os.Stdout, os.Stdin); err != nil {
		return err
	}
	r.In.Handle = 1 << 20 // not open
	if err := r.PutOnStandard(); !errors.Is(err, unix.EBADF) || !strings.Contains(err.Error(), "descriptor 0") {
		return fmt.Errorf("putting back what is closed gave %w", err)
	}
	if !r.Out.ID.Is(1) {
		return errors.New("a failure for 0 has changed 1")
	}
	return nil
}

func TestPutOnStandard(t *testing.T) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	childIn, in, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	out, childOut, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = out.Close() }()
	cmd := exec.CommandContext(t.Context(), self)
	cmd.Env = append(os.Environ(), roleVariable+"=1", "GORACE=atexit_sleep_ms=0")
	cmd.Stderr = os.Stderr
	cmd.ExtraFiles = []*os.File{childIn, childOut}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	_, _ = childIn.Close(), childOut.Close()
	if _, err := io.WriteString(in, "there and back"); err != nil {
		t.Error(err)
	}
	_ = in.Close()
	got, err := io.ReadAll(out)
	if err != nil || string(got) != "there and back" {
		t.Errorf("%q, %v", got, err)
	}
	if err := cmd.Wait(); err != nil {
		t.Error(err)
	}
}

func TestClosePair(t *testing.T) {
	in, out, err := pipes.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	r := Record{In: End{Handle: in}, Out: End{Handle: out}}
	if err := r.ClosePair(); err != nil {
		t.Error(err)
	}
	for _, h := range []pipes.Handle{in, out} {
		if pipes.Compare(h, h) != pipes.Closed {
			t.Errorf("%d is open", h)
		}
	}
	// Both are tried, and both failures told.
	if err := r.ClosePair(); err == nil || strings.Count(err.Error(), "close") != 2 {
		t.Errorf("closing what is closed gave %v", err)
	}
}
