package client

import (
	"golang.org/x/sys/windows"

	"github.com/wireguardrun/wireguardrun/internal/pipes"
)

// A pipe's end can't be waited for here without reading or writing it; the
// server sees it itself, since it has the client's own pipes.

func waitWritersGone(pipes.Handle) bool { return false }
func waitReadersGone(pipes.Handle) bool { return false }
func writersGone(pipes.Handle) bool     { return false }
func readersGone(pipes.Handle) bool     { return false }
func isNamed(pipes.Handle) bool         { return false }

// parentEnd returns a channel that is closed when our parent pid has ended, or
// nil when it can't be watched. The handle is opened at our start; a process
// that is younger than we are has got the number of a parent that is gone.
func parentEnd(pid int) <-chan struct{} {
	parent, err := windows.OpenProcess(windows.SYNCHRONIZE|windows.PROCESS_QUERY_LIMITED_INFORMATION, false, uint32(pid))
	if err != nil {
		return nil
	}
	if !isOlder(parent, windows.CurrentProcess()) {
		_ = windows.CloseHandle(parent)
		return nil
	}
	gone := make(chan struct{})
	go func() {
		defer func() { _ = windows.CloseHandle(parent) }()
		if event, err := windows.WaitForSingleObject(parent, windows.INFINITE); err == nil && event == windows.WAIT_OBJECT_0 {
			close(gone)
		}
	}()
	return gone
}

func isOlder(a, b windows.Handle) bool {
	var born [2]windows.Filetime
	for i, process := range []windows.Handle{a, b} {
		var exit, kernel, user windows.Filetime
		if windows.GetProcessTimes(process, &born[i], &exit, &kernel, &user) != nil {
			return false
		}
	}
	return born[0].Nanoseconds() <= born[1].Nanoseconds()
}

func holdsOtherEnd(int, pipes.Handle, pipes.Handle) (known, holds bool) { return false, false }
