//go:build unix

package handover

import "github.com/wireguardrun/wireguardrun/internal/pipes"

// redirect makes standard descriptor n name the object of h, which is borrowed.
func redirect(h pipes.Handle, n int) error { return pipes.Redirect(h, n) }
