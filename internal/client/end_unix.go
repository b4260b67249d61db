//go:build unix

package client

import (
	"golang.org/x/sys/unix"

	"github.com/wireguardrun/wireguardrun/internal/pipes"
)

func fileType(h pipes.Handle) (st unix.Stat_t, kind uint32) {
	if unix.Fstat(int(h), &st) != nil {
		return st, 0
	}
	return st, uint32(st.Mode) & unix.S_IFMT //nolint:unconvert // 16 bits on the BSDs
}

// hasOtherEnd reports whether a process can be at the other end of h. A
// terminal that was hung up does not say any more that it is one.
func hasOtherEnd(h pipes.Handle) bool {
	_, kind := fileType(h)
	return kind == unix.S_IFIFO || kind == unix.S_IFSOCK || kind == unix.S_IFCHR && !pipes.IsNull(h)
}

// isNamed reports whether h is a FIFO that others can open by a name.
func isNamed(h pipes.Handle) bool {
	st, kind := fileType(h)
	return kind == unix.S_IFIFO && st.Nlink > 0 && !isAnonymous(h)
}

// isFileRead reports whether the offset that a file's readers share, the server
// and we, is at its end.
func isFileRead(h pipes.Handle) (read, known bool) {
	if _, kind := fileType(h); kind != unix.S_IFREG {
		return false, false
	}
	n, known := pipes.Unread(h)
	return known && n <= 0, known
}
