package handover

import (
	"errors"
	"fmt"

	"github.com/wireguardrun/wireguardrun/internal/pipes"
)

// PutOnStandard makes the standard handles the handed-down wire and closes the
// extra pair. It stops at the first failure: the wire is then still open on
// the pair. Package os's files stay on the diversion.
func (r Record) PutOnStandard() error {
	for n, end := range []End{r.In, r.Out} {
		h, err := pipes.DuplicateInheritable(end.Handle)
		if err == nil {
			if err = pipes.SetStandard(n, h); err != nil {
				_ = pipes.Close(h)
			}
		}
		if err != nil {
			return fmt.Errorf("put the wire back on standard handle %d: %w", n, err)
		}
	}
	return r.ClosePair()
}

// ClosePair closes the extra pair in this process.
func (r Record) ClosePair() error {
	return errors.Join(pipes.Close(r.In.Handle), pipes.Close(r.Out.Handle))
}
