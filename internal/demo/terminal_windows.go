package demo

import (
	"os"

	"golang.org/x/sys/windows"
)

// terminal returns the width of f in columns, 0 if f is no console, and whether
// the console takes colour sequences. Switching that on would change the
// console for everyone who shares it.
func terminal(f *os.File) (width int, colour bool) {
	conn, err := f.SyscallConn()
	if err != nil {
		return 0, false
	}
	_ = conn.Control(func(handle uintptr) {
		var info windows.ConsoleScreenBufferInfo
		var mode uint32
		if windows.GetConsoleScreenBufferInfo(windows.Handle(handle), &info) != nil ||
			windows.GetConsoleMode(windows.Handle(handle), &mode) != nil {
			return
		}
		width = int(info.Window.Right) - int(info.Window.Left) + 1
		colour = mode&windows.ENABLE_VIRTUAL_TERMINAL_PROCESSING != 0
	})
	return width, colour
}
