//go:build !linux

package client

import "github.com/wireguardrun/wireguardrun/internal/pipes"

// activity can't be seen here beyond what Options.Activity tells.
type activity struct{}

func watchActivity(pipes.Handle) *activity { return &activity{} }
func (*activity) seen() uint64             { return 0 }
func (*activity) close()                   {}
