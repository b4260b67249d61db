package guard

import (
	"golang.org/x/sys/windows"

	"github.com/wireguardrun/wireguardrun/internal/pipes"
)

// closeStandard leaves the standard handle with a value that is not open, as
// code does that closes what GetStdHandle gave it.
func closeStandard(s Stream) { _ = pipes.Close(pipes.Standard(int(s))) }

// highestHandle is well above what a test process gets to; handles are
// multiples of four, the lowest that is free.
const highestHandle = 1 << 12

// openHandles counts the open handles of files, pipes and devices. The others
// are the runtime's, which opens and closes them as it likes.
func openHandles() int {
	n := 0
	for h := windows.Handle(4); h < highestHandle; h += 4 {
		if kind, _ := windows.GetFileType(h); kind != windows.FILE_TYPE_UNKNOWN {
			n++
		}
	}
	return n
}
