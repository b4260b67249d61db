package proc

import (
	"unsafe"

	"golang.org/x/sys/windows"

	"github.com/wireguardrun/wireguardrun/internal/pipes"
)

// objectBasicInformation is PUBLIC_OBJECT_BASIC_INFORMATION, class 0 of
// NtQueryObject.
type objectBasicInformation struct {
	attributes, access uint32
	handles, pointers  uint32
	_                  [10]uint32
}

var procQueryObject = windows.NewLazySystemDLL("ntdll.dll").NewProc("NtQueryObject")

// handleCount returns how many handles of all processes name the object of h.
// It asks the table of handles, not the object, and never waits.
func handleCount(h windows.Handle) (n uint32, known bool) {
	if procQueryObject.Find() != nil {
		return 0, false
	}
	var info objectBasicInformation
	status, _, _ := procQueryObject.Call(uintptr(h), 0,
		uintptr(unsafe.Pointer(&info)), unsafe.Sizeof(info), 0)
	return info.handles, windows.NTStatus(status) == windows.STATUS_SUCCESS
}

func handleCounts(handles []pipes.Handle) map[pipes.Handle]uint32 {
	counts := map[pipes.Handle]uint32{}
	for _, h := range handles {
		if n, known := handleCount(windows.Handle(h)); known {
			counts[h] = n
		}
	}
	return counts
}
