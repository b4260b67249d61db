//go:build unix

package demo

import (
	"os"

	"golang.org/x/sys/unix"
)

// terminal returns the width of f in columns, 0 if f is no terminal or doesn't
// tell, and whether it is a terminal, which may be sent colours.
func terminal(f *os.File) (width int, colour bool) {
	// Not f.Fd(), which would make the descriptor blocking.
	conn, err := f.SyscallConn()
	if err != nil {
		return 0, false
	}
	_ = conn.Control(func(fd uintptr) {
		if size, err := unix.IoctlGetWinsize(int(fd), unix.TIOCGWINSZ); err == nil {
			width, colour = int(size.Col), true
		}
	})
	return width, colour
}
