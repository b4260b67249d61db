package proc

import (
	"encoding/binary"
	"fmt"
	"math"
	"unsafe"

	"golang.org/x/sys/windows"

	"github.com/wireguardrun/wireguardrun/internal/pipes"
)

// startupInfo is STARTUPINFOEXW with the two fields that package windows hides.
// By them a parent gives the C runtime of its child, if it has one, a table of
// descriptor numbers: that is how C, Node and Python programs get a 3.
type startupInfo struct {
	cb            uint32
	_             *uint16
	desktop       *uint16
	title         *uint16
	x             uint32
	y             uint32
	xSize         uint32
	ySize         uint32
	xCountChars   uint32
	yCountChars   uint32
	fillAttribute uint32
	flags         uint32
	showWindow    uint16
	tableSize     uint16 // cbReserved2
	table         *byte  // lpReserved2
	stdInput      windows.Handle
	stdOutput     windows.Handle
	stdErr        windows.Handle
	attributes    *windows.ProcThreadAttributeList
}

// Should the two ever differ, this does not compile.
var _ [unsafe.Sizeof(windows.StartupInfoEx{})]byte = [unsafe.Sizeof(startupInfo{})]byte{}

// Flags of an entry of the table. Without a text flag (0x80) a descriptor is
// binary: CR LF and ^Z pass as they are.
const (
	tableOpen   = 0x01
	tablePipe   = 0x08
	tableDevice = 0x40
)

const handleSize = int(unsafe.Sizeof(windows.Handle(0)))

// entry is a descriptor of the table; a closed one has flags 0.
type entry struct {
	flags  byte
	handle pipes.Handle
}

// newEntry describes a descriptor that names h; None is closed. The pipe flag
// keeps the child from asking what it is, which could wait.
func newEntry(h pipes.Handle) entry {
	if h == pipes.None {
		return entry{handle: pipes.None}
	}
	e := entry{flags: tableOpen, handle: h}
	switch t, _ := windows.GetFileType(windows.Handle(h)); t {
	case windows.FILE_TYPE_PIPE:
		e.flags |= tablePipe
	case windows.FILE_TYPE_CHAR:
		e.flags |= tableDevice
	}
	return e
}

// encodeTable lays the entries out: their number in 32 bits, the flags, and
// then the handles, without padding.
func encodeTable(entries []entry) ([]byte, error) {
	if len(entries) == 0 {
		return nil, nil
	}
	size := 4 + len(entries)*(1+handleSize)
	if size > math.MaxUint16 {
		return nil, fmt.Errorf("descriptor number %d is too high for a child", len(entries)-1)
	}
	table := binary.LittleEndian.AppendUint32(make([]byte, 0, size), uint32(len(entries)))
	for _, e := range entries {
		table = append(table, e.flags)
	}
	for _, e := range entries {
		wide := binary.LittleEndian.AppendUint64(nil, uint64(e.handle))
		table = append(table, wide[:handleSize]...)
	}
	return table, nil
}

// decodeTable is the opposite of encodeTable. What is no table gives nil.
func decodeTable(table []byte) []entry {
	if len(table) < 4 {
		return nil
	}
	n := int(binary.LittleEndian.Uint32(table))
	if n <= 0 || n > (len(table)-4)/(1+handleSize) {
		return nil
	}
	entries := make([]entry, n)
	flags, handles := table[4:4+n], table[4+n:]
	for i := range entries {
		var wide [8]byte
		copy(wide[:], handles[i*handleSize:(i+1)*handleSize])
		entries[i] = entry{flags[i], pipes.Handle(binary.LittleEndian.Uint64(wide[:]))}
	}
	return entries
}

// inheritedTable returns the table that this process was started with, or nil.
func inheritedTable() []entry {
	var info startupInfo
	procGetStartupInfo.Call(uintptr(unsafe.Pointer(&info)))
	if info.table == nil {
		return nil
	}
	return decodeTable(unsafe.Slice(info.table, info.tableSize))
}

var procGetStartupInfo = windows.NewLazySystemDLL("kernel32.dll").NewProc("GetStartupInfoW")
