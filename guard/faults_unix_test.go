//go:build unix

package guard

import (
	"os"

	"github.com/wireguardrun/wireguardrun/internal/pipes"
)

// closeStandard leaves a hole where a standard descriptor was.
func closeStandard(s Stream) { _ = pipes.Close(s.descriptor()) }

// openHandles counts the open descriptors of this process, or returns -1
// where that can't be told.
func openHandles() int {
	entries, err := os.ReadDir("/dev/fd")
	if err != nil {
		return -1
	}
	return len(entries)
}
