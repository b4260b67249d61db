package pipes

import (
	"fmt"
	"os"
	"strings"
	"unicode/utf16"
	"unsafe"

	"golang.org/x/sys/windows"
)

// identify says of a pipe its name, which both of its ends share, of a file
// its volume and index, and of devices little more than what they are: there
// is no name to tell two consoles apart.
func identify(h Handle) (Identity, error) {
	k, err := kindOf(h)
	if err != nil {
		return "", err
	}
	var detail string
	switch k {
	case kindPipe:
		detail, err = pipeName(h)
	case kindDisk:
		detail, err = fileIndex(h)
	case kindConsole:
		detail = consoleSide(h)
	case kindOther:
		detail = fmt.Sprintf("%x", deviceType(h))
	}
	if err != nil {
		return "", err
	}
	return Identity(string(k) + ":" + escape(detail)), nil
}

// pipeName returns the name below \Device\NamedPipe. A pipe of CreatePipe has
// none on some systems; then it is its maker and the number that the system
// knows it by, as far as that is told.
func pipeName(h Handle) (string, error) {
	// FILE_NAME_INFO: the length in bytes and then the name.
	var info struct {
		length uint32
		name   [1 << 12]uint16
	}
	err := windows.GetFileInformationByHandleEx(windows.Handle(h), windows.FileNameInfo,
		(*byte)(unsafe.Pointer(&info)), uint32(unsafe.Sizeof(info)))
	n := min(int(info.length/2), len(info.name))
	if err == nil && n > 1 { // more than a backslash
		return string(utf16.Decode(info.name[:n])), nil
	}
	return namelessPipe(h)
}

func namelessPipe(h Handle) (string, error) {
	var number uint64
	maker := PipeMaker(h)
	err := queryFile(h, fileInternalInformation, unsafe.Pointer(&number), unsafe.Sizeof(number))
	if err != nil && maker == 0 {
		return "", os.NewSyscallError("NtQueryInformationFile", err)
	}
	return fmt.Sprintf("%x.%x", maker, number), nil
}

func fileIndex(h Handle) (string, error) {
	var info windows.ByHandleFileInformation
	if err := windows.GetFileInformationByHandle(windows.Handle(h), &info); err != nil {
		return "", os.NewSyscallError("GetFileInformationByHandle", err)
	}
	return fmt.Sprintf("%x:%x%08x", info.VolumeSerialNumber, info.FileIndexHigh, info.FileIndexLow), nil
}

func consoleSide(h Handle) string {
	var events uint32
	if windows.GetNumberOfConsoleInputEvents(windows.Handle(h), &events) == nil {
		return "in"
	}
	return "out"
}

// escape keeps an identity to characters that mean nothing in the record that
// holds it, nor in an environment.
func escape(s string) string {
	var b strings.Builder
	for _, c := range []byte(s) {
		if c <= ' ' || c >= 0x7f || strings.IndexByte(";@=%", c) >= 0 {
			fmt.Fprintf(&b, "%%%02x", c)
		} else {
			b.WriteByte(c)
		}
	}
	return b.String()
}

// procCompare answers without touching the objects, so that it never waits
// for what is under way on them. Systems before Windows 10 lack it.
var procCompare = windows.NewLazySystemDLL("kernelbase.dll").NewProc("CompareObjectHandles")

func compare(a, b Handle) Verdict {
	if !open(a) {
		return Closed
	}
	if !open(b) {
		return Different
	}
	if procCompare.Find() != nil {
		return compareIdentities(a, b)
	}
	same, _, err := procCompare.Call(uintptr(a), uintptr(b))
	switch {
	case same != 0:
		return Same
	case err == windows.ERROR_SUCCESS || err == windows.ERROR_NOT_SAME_OBJECT:
		return Different
	default:
		return compareIdentities(a, b)
	}
}

// sameFile does not ask for identities where it can do without: that waits for
// a write that is under way.
func sameFile(a, b Handle) bool {
	v := compare(a, b)
	return v == Same || v == Alike
}

func compareIdentities(a, b Handle) Verdict {
	ia, errA := identify(a)
	ib, errB := identify(b)
	switch {
	case errA != nil || errB != nil:
		return Unknown
	case ia == ib:
		return Alike
	default:
		return Different
	}
}
