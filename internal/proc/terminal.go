package proc

import "github.com/wireguardrun/wireguardrun/internal/pipes"

// ForegroundTerminal returns descriptor 0 when it and descriptor 1 are our
// controlling terminal and we lead its foreground group: a job of a shell, to
// whose child the keyboard has to go. Else it returns None.
func ForegroundTerminal() pipes.Handle { return foregroundTerminal() }

// TakeForeground makes our group the foreground of terminal again.
func TakeForeground(terminal pipes.Handle) error { return takeForeground(terminal) }
