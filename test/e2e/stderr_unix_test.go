//go:build unix

package e2e

import (
	"errors"
	"testing"

	"golang.org/x/sys/unix"
)

// A failure ends the run also where nobody reads what there is to say of it.
func TestFailureStderrFull(t *testing.T) {
	for name, tt := range map[string]struct {
		o    Options
		code int
	}{
		"wrong use": {Options{Flags: []string{"--no-such-flag"}}, 125},
		"not found": {Options{Command: []string{"no-such-program"}}, 127},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r, w := newPipe(t)
			defer r.Close()
			onDescriptor(t, w, func(fd int) error {
				for {
					if _, err := unix.Write(fd, make([]byte, 512)); errors.Is(err, unix.EAGAIN) {
						return nil
					} else if err != nil {
						return err
					}
				}
			})
			tt.o.StderrTo = w
			s := start(t, tt.o)
			s.ExpectEnd()
			s.ExpectExit(Status{Code: tt.code})
		})
	}
}
