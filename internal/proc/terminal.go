package proc

import "github.com/wireguardrun/wireguardrun/internal/pipes"

// ForegroundTerminal returns descriptor 0 when it and descriptor 1 are our
// controlling terminal and our group is in its foreground: a person is the
// client, and the keyboard has to go to the child. Else it returns None.
func ForegroundTerminal() pipes.Handle { return foregroundTerminal() }

// TakeForeground makes our group the foreground of terminal again.
func TakeForeground(terminal pipes.Handle) error { return takeForeground(terminal) }

// GiveForeground makes the group of p the foreground of terminal, if ours is,
// and reports whether that of p is now.
func GiveForeground(terminal pipes.Handle, p *Process) bool {
	return giveForeground(terminal, p.Pid())
}
