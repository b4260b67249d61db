//go:build unix

package proc

import (
	"os"
	"strconv"

	"golang.org/x/sys/unix"

	"github.com/wireguardrun/wireguardrun/internal/pipes"
)

// IsInherited reports whether descriptor n is one that we were started with:
// it is open, and an exec would pass it on. All of our own making are
// close-on-exec from the start.
func IsInherited(n int) bool {
	flags, err := unix.FcntlInt(uintptr(n), unix.F_GETFD, 0)
	return err == nil && flags&unix.FD_CLOEXEC == 0
}

// CloseInherited closes our copies of the descriptors above 2 that we were
// started with, after the child has got them: held by us they would keep the
// other ends from seeing the child's end of file.
func CloseInherited() {
	for _, n := range openDescriptors() {
		if n > 2 && IsInherited(n) {
			_ = pipes.Close(pipes.Handle(n))
		}
	}
}

// openDescriptors lists at least all descriptors that are open.
func openDescriptors() []int {
	var numbers []int
	// FreeBSD's /dev/fd lists 0 to 2 only, unless fdescfs is mounted there.
	for _, dir := range []string{"/proc/self/fd", "/dev/fd"} {
		entries, err := os.ReadDir(dir)
		if err != nil || len(entries) <= 3 {
			continue
		}
		for _, e := range entries {
			if n, err := strconv.Atoi(e.Name()); err == nil {
				numbers = append(numbers, n)
			}
		}
		return numbers
	}
	for n := range mostDescriptors {
		numbers = append(numbers, n)
	}
	return numbers
}

// mostDescriptors bounds the search where the system has no list.
const mostDescriptors = 4096
