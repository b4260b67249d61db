package pipes

import (
	"crypto/rand"
	"errors"
	"os"

	"golang.org/x/sys/windows"
)

// The ends that a child gets are opened without FILE_FLAG_OVERLAPPED, as
// CreatePipe makes them, with the same rights: programs ask their pipes for
// the attributes and set the modes.
const (
	childReads  = windows.GENERIC_READ | windows.FILE_WRITE_ATTRIBUTES
	childWrites = windows.GENERIC_WRITE | windows.FILE_READ_ATTRIBUTES
)

func pipeToChild() (theirs, ours Handle, err error) {
	return childPipe(windows.PIPE_ACCESS_OUTBOUND, childReads)
}

func pipeFromChild() (theirs, ours Handle, err error) {
	return childPipe(windows.PIPE_ACCESS_INBOUND, childWrites)
}

func childPipe(direction, access uint32) (theirs, ours Handle, err error) {
	const most = 3
	for range most {
		theirs, ours, err = childPipeOnce(direction, access)
		// Somebody watches the list of pipes and was faster.
		if !errors.Is(err, windows.ERROR_PIPE_BUSY) {
			break
		}
	}
	return theirs, ours, err
}

func childPipeOnce(direction, access uint32) (theirs, ours Handle, err error) {
	name, err := windows.UTF16PtrFromString(`\\.\pipe\wireguardrun-` + rand.Text())
	if err != nil {
		return None, None, err
	}
	// One instance, so that the end which is opened next is the only one.
	server, err := windows.CreateNamedPipe(name,
		direction|windows.FILE_FLAG_FIRST_PIPE_INSTANCE|windows.FILE_FLAG_OVERLAPPED,
		windows.PIPE_TYPE_BYTE|windows.PIPE_REJECT_REMOTE_CLIENTS, 1, pipeSize, pipeSize, 0, nil)
	if err != nil {
		return None, None, os.NewSyscallError("CreateNamedPipe", err)
	}
	if ours, err = apart(Handle(server)); err != nil {
		return None, None, err
	}
	client, err := windows.CreateFile(name, access, 0, nil, windows.OPEN_EXISTING, 0, 0)
	if err != nil {
		_ = closeHandle(ours)
		return None, None, os.NewSyscallError("CreateFile", err)
	}
	if theirs, err = apart(Handle(client)); err != nil {
		_ = closeHandle(ours)
		return None, None, err
	}
	return theirs, ours, nil
}
