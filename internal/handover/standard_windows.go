package handover

import "github.com/wireguardrun/wireguardrun/internal/pipes"

// redirect makes standard handle n a duplicate of h, which is borrowed.
func redirect(h pipes.Handle, n int) error {
	d, err := pipes.DuplicateInheritable(h)
	if err != nil {
		return err
	}
	if err := pipes.SetStandard(n, d); err != nil {
		_ = pipes.Close(d)
		return err
	}
	return nil
}
