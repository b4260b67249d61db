//go:build unix

package handover

import (
	"errors"
	"fmt"

	"github.com/wireguardrun/wireguardrun/internal/pipes"
)

// PutOnStandard makes descriptors 0 and 1 the handed-down wire and closes the
// extra pair. It stops at the first failure: the wire is then still open on
// the pair.
func (r Record) PutOnStandard() error {
	for target, end := range []End{r.In, r.Out} {
		if err := pipes.Redirect(end.Handle, target); err != nil {
			return fmt.Errorf("put the wire back on descriptor %d: %w", target, err)
		}
	}
	return r.ClosePair()
}

// ClosePair closes the extra pair in this process.
func (r Record) ClosePair() error {
	return errors.Join(pipes.Close(r.In.Handle), pipes.Close(r.Out.Handle))
}
