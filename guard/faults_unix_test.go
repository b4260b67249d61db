//go:build unix

package guard

import (
	"os"

	"github.com/wireguardrun/wireguardrun/internal/pipes"
)

// closeStandard does what a dup2 does that fails after closing its target.
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
