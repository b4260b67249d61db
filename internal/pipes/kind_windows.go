package pipes

import (
	"os"
	"time"
	"unsafe"

	"golang.org/x/sys/windows"
)

// kind is what sort of object a handle names. GetFileType knows no more than
// that the null device and a console are both characters, and sockets pipes.
type kind string

const (
	kindDisk    kind = "disk"
	kindPipe    kind = "pipe"
	kindNull    kind = "null"
	kindConsole kind = "console"
	kindSocket  kind = "socket"
	kindOther   kind = "device" // serial lines and the like
)

// Device types of winioctl.h.
const (
	fileDeviceNamedPipe     = 0x11
	fileDeviceNetwork       = 0x12
	fileDeviceNull          = 0x15
	fileDeviceConsole       = 0x50
	fileFsDeviceInformation = 4 // class of NtQueryVolumeInformationFile
)

// fileFsDevice is FILE_FS_DEVICE_INFORMATION.
type fileFsDevice struct{ deviceType, characteristics uint32 }

var procQueryVolume = windows.NewLazySystemDLL("ntdll.dll").NewProc("NtQueryVolumeInformationFile")

func kindOf(h Handle) (kind, error) {
	if !open(h) {
		return "", os.NewSyscallError("GetFileType", windows.ERROR_INVALID_HANDLE)
	}
	if isTerminal(h) {
		return kindConsole, nil
	}
	t, err := windows.GetFileType(windows.Handle(h))
	if err != nil {
		return "", os.NewSyscallError("GetFileType", err)
	}
	if t == windows.FILE_TYPE_DISK {
		return kindDisk, nil
	}
	switch deviceType(h) {
	case fileDeviceNamedPipe:
		return kindPipe, nil
	case fileDeviceNetwork:
		return kindSocket, nil
	case fileDeviceNull:
		return kindNull, nil
	case fileDeviceConsole: // a handle of a console that we are not attached to
		return kindConsole, nil
	}
	if t == windows.FILE_TYPE_PIPE {
		return kindPipe, nil
	}
	return kindOther, nil
}

// kindSoon is kindOf where h may be in use; only pipes keep one waiting.
func kindSoon(h Handle) kind {
	const limit = 200 * time.Millisecond
	return Soon(h, limit, func() kind {
		k, _ := kindOf(h)
		return k
	})
}

// deviceType returns 0 where the system doesn't tell.
func deviceType(h Handle) uint32 {
	if procQueryVolume.Find() != nil {
		return 0
	}
	var status windows.IO_STATUS_BLOCK
	var device fileFsDevice
	r, _, _ := procQueryVolume.Call(uintptr(h), uintptr(unsafe.Pointer(&status)),
		uintptr(unsafe.Pointer(&device)), unsafe.Sizeof(device), fileFsDeviceInformation)
	if windows.NTStatus(r) != windows.STATUS_SUCCESS {
		return 0
	}
	return device.deviceType
}
