package client

import (
	"fmt"
	"os"
	"strings"

	"github.com/wireguardrun/wireguardrun/internal/pipes"
)

// isAnonymous tells a pipe from a FIFO: an inode of the kernel's own has no
// path.
func isAnonymous(h pipes.Handle) bool {
	link, err := os.Readlink(fmt.Sprintf("/proc/self/fd/%d", h))
	return err != nil || strings.HasPrefix(link, "pipe:")
}
