package pipes

import (
	"os"

	"golang.org/x/sys/windows"
)

// modes is the console mode, which belongs to the console: everyone who is
// attached to it sees a change. No other object has modes that a process
// which shares it can change by accident.
type modes struct {
	console bool
	mode    uint32
}

func readModes(h Handle) (modes, error) {
	if !open(h) {
		return modes{}, os.NewSyscallError("GetConsoleMode", windows.ERROR_INVALID_HANDLE)
	}
	var m modes
	m.console = windows.GetConsoleMode(windows.Handle(h), &m.mode) == nil
	return m, nil
}

func reinstate(h Handle, want modes) error {
	now, err := readModes(h)
	if err != nil {
		return err
	}
	if !now.console || !want.console || now.mode == want.mode {
		return nil
	}
	return os.NewSyscallError("SetConsoleMode", windows.SetConsoleMode(windows.Handle(h), want.mode))
}

// setBlocking has nothing to do: whether calls wait is decided when an object
// is opened (overlapped or not), and can't be changed for those who share it.
func setBlocking(Handle) error { return nil }
