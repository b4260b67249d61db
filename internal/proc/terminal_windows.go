package proc

import "github.com/wireguardrun/wireguardrun/internal/pipes"

// foregroundTerminal: a console has no foreground; whoever is attached to it
// reads from it.
func foregroundTerminal() pipes.Handle { return pipes.None }

func takeForeground(pipes.Handle) error { return nil }

func giveForeground(pipes.Handle, int) bool { return false }
