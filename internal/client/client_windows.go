package client

import (
	"io"
	"time"

	"golang.org/x/sys/windows"

	"github.com/wireguardrun/wireguardrun/internal/pipes"
)

// Nothing tells of a pipe's end but a read or a write of it, which would take
// bytes or be seen by the other end. So its state is looked at. The client's
// handles are synchronous as a rule: then the look waits for the read or write
// that the server, or our relay, has under way, and that ends when the other
// end is closed.

// lookAgain is the time between two looks at a pipe that is whole.
const lookAgain = 100 * time.Millisecond

func waitWritersGone(h pipes.Handle) bool { return waitSevered(h) }
func waitReadersGone(h pipes.Handle) bool { return waitSevered(h) }
func writersGone(h pipes.Handle) bool     { return isSevered(h) }
func readersGone(h pipes.Handle) bool     { return isSevered(h) }

// isNamed: an end of a pipe that is closed stays closed, whatever its name.
func isNamed(pipes.Handle) bool { return false }

// waitSevered returns false where there is no other end.
func waitSevered(h pipes.Handle) bool {
	for {
		severed, known := pipes.Severed(h)
		if severed || !known {
			return severed
		}
		time.Sleep(lookAgain)
	}
}

// isSevered takes a pipe that is in use for whole.
func isSevered(h pipes.Handle) bool {
	const atOnce = 50 * time.Millisecond
	return pipes.Soon(h, atOnce, func() bool {
		severed, _ := pipes.Severed(h)
		return severed
	})
}

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

// holdsOtherEnd takes the process that made a pipe for the one that holds its
// other end: who holds it is not told.
func holdsOtherEnd(pid int, in, out pipes.Handle) (known, holds bool) {
	const limit = time.Second
	// The output first: nobody waits on it as a rule.
	for _, h := range []pipes.Handle{out, in} {
		if maker := pipes.Soon(h, limit, func() int { return pipes.PipeMaker(h) }); maker != 0 {
			return true, maker == pid
		}
	}
	return false, false
}

// isFileRead reports whether the offset that a file's readers share, the server
// and we, is at its end.
func isFileRead(h pipes.Handle) (read, known bool) {
	if t, err := windows.GetFileType(windows.Handle(h)); err != nil || t != windows.FILE_TYPE_DISK {
		return false, false
	}
	at, err := windows.Seek(windows.Handle(h), 0, io.SeekCurrent)
	if err != nil {
		return false, false
	}
	var info windows.ByHandleFileInformation
	if err := windows.GetFileInformationByHandle(windows.Handle(h), &info); err != nil {
		return false, false
	}
	return at >= int64(info.FileSizeHigh)<<32|int64(info.FileSizeLow), true
}
