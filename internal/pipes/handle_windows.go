package pipes

import (
	"os"
	"unsafe"

	"golang.org/x/sys/windows"
)

// pipeSize is the capacity of a new pipe in bytes, as much as on Linux. The
// system's own default is a page.
const pipeSize = 64 << 10

// nullDevice in this spelling is the device whatever the current directory.
const nullDevice = `\\.\NUL`

// open reports whether h is an open handle. Zero is none, and the values that
// are negative as integers are pseudo-handles: windows.InvalidHandle is also
// the handle of this process, which must not be duplicated or compared.
func open(h Handle) bool {
	if int(h) <= 0 {
		return false
	}
	var flags uint32
	ok, _, _ := procGetHandleInformation.Call(uintptr(h), uintptr(unsafe.Pointer(&flags)))
	return ok != 0
}

// DuplicateInheritable is Duplicate, but children inherit the duplicate.
func DuplicateInheritable(h Handle) (Handle, error) {
	d, err := duplicate(h)
	if err != nil {
		return None, err
	}
	if err := SetInherited(d, true); err != nil {
		_ = closeHandle(d)
		return None, err
	}
	return d, nil
}

// IsInherited reports whether children inherit h, which is borrowed.
func IsInherited(h Handle) (bool, error) {
	var flags uint32
	ok, _, err := procGetHandleInformation.Call(uintptr(h), uintptr(unsafe.Pointer(&flags)))
	if ok == 0 {
		return false, os.NewSyscallError("GetHandleInformation", err)
	}
	return flags&windows.HANDLE_FLAG_INHERIT != 0, nil
}

// SetInherited says whether children inherit h, which is borrowed.
func SetInherited(h Handle, on bool) error {
	flags := uint32(0)
	if on {
		flags = windows.HANDLE_FLAG_INHERIT
	}
	err := windows.SetHandleInformation(windows.Handle(h), windows.HANDLE_FLAG_INHERIT, flags)
	return os.NewSyscallError("SetHandleInformation", err)
}

// SetStandard makes h standard handle n. h is handed over to the process: nobody
// closes a standard handle.
func SetStandard(n int, h Handle) error {
	return os.NewSyscallError("SetStdHandle", windows.SetStdHandle(slots[n], windows.Handle(h)))
}

var slots = [...]uint32{windows.STD_INPUT_HANDLE, windows.STD_OUTPUT_HANDLE, windows.STD_ERROR_HANDLE}

var procGetHandleInformation = windows.NewLazySystemDLL("kernel32.dll").NewProc("GetHandleInformation")

// standard takes a slot that is empty, or names what is no longer open, as
// none.
func standard(n int) Handle {
	if h := slotValue(n); open(h) {
		return h
	}
	return None
}

// slotValue returns what the process has in standard slot n, open or not.
func slotValue(n int) Handle {
	h, err := windows.GetStdHandle(slots[n])
	if err != nil {
		return None
	}
	return Handle(h)
}

func duplicate(h Handle) (Handle, error) {
	d, err := duplicateOnce(h)
	if err != nil {
		return None, err
	}
	return apart(d)
}

func duplicateOnce(h Handle) (Handle, error) {
	if !open(h) {
		return None, os.NewSyscallError("DuplicateHandle", windows.ERROR_INVALID_HANDLE)
	}
	self := windows.CurrentProcess()
	var d windows.Handle
	err := windows.DuplicateHandle(self, windows.Handle(h), self, &d, 0, false, windows.DUPLICATE_SAME_ACCESS)
	if err != nil {
		return None, os.NewSyscallError("DuplicateHandle", err)
	}
	return Handle(d), nil
}

// apart returns h, which it owns, or a duplicate with another value when h has
// the value of a standard handle: a parent that closed one of those before it
// started us leaves its old value, which the system then gives to the next
// object that is opened.
func apart(h Handle) (Handle, error) {
	if !standardValue(h) {
		return h, nil
	}
	d, err := duplicateOnce(h)
	if err == nil {
		d, err = apart(d)
	}
	_ = closeHandle(h)
	return d, err
}

func standardValue(h Handle) bool {
	return h == slotValue(0) || h == slotValue(1) || h == slotValue(2)
}

func closeHandle(h Handle) error {
	if int(h) <= 0 { // closing a pseudo-handle "succeeds"
		return os.NewSyscallError("CloseHandle", windows.ERROR_INVALID_HANDLE)
	}
	return os.NewSyscallError("CloseHandle", windows.CloseHandle(windows.Handle(h)))
}

func openNull() (Handle, error) {
	// OPEN_EXISTING and nothing else: some systems refuse to truncate the
	// null device.
	name, err := windows.UTF16PtrFromString(nullDevice)
	if err != nil {
		return None, err
	}
	h, err := windows.CreateFile(name, windows.GENERIC_READ|windows.GENERIC_WRITE,
		windows.FILE_SHARE_READ|windows.FILE_SHARE_WRITE, nil, windows.OPEN_EXISTING, 0, 0)
	if err != nil {
		return None, &os.PathError{Op: "open", Path: os.DevNull, Err: err}
	}
	return apart(Handle(h))
}

func pipe() (r, w Handle, err error) {
	var hr, hw windows.Handle
	if err := windows.CreatePipe(&hr, &hw, nil, pipeSize); err != nil {
		return None, None, os.NewSyscallError("CreatePipe", err)
	}
	if r, err = apart(Handle(hr)); err != nil {
		_ = closeHandle(Handle(hw))
		return None, None, err
	}
	if w, err = apart(Handle(hw)); err != nil {
		_ = closeHandle(r)
		return None, None, err
	}
	return r, w, nil
}

// isTerminal asks the console, not the object: any other question to a
// synchronous pipe waits for a read or write of it that is under way,
// wherever that may be.
func isTerminal(h Handle) bool {
	var mode uint32
	return int(h) > 0 && windows.GetConsoleMode(windows.Handle(h), &mode) == nil
}

func neverBlocks(h Handle) bool {
	k := kindSoon(h)
	return k == kindDisk || k == kindNull
}

func isNull(h Handle) bool { return kindSoon(h) == kindNull }

func grow(Handle, int) {}

// peek: a pipe has as many reading ends as it was made with.
func peek(Handle) Handle { return None }
