//go:build unix

package proc

import (
	"os"
	"strconv"

	"golang.org/x/sys/unix"

	"github.com/wireguardrun/wireguardrun/internal/pipes"
)

func isInherited(n int) bool {
	flags, err := unix.FcntlInt(uintptr(n), unix.F_GETFD, 0)
	return err == nil && flags&unix.FD_CLOEXEC == 0
}

func closeInherited() {
	for _, n := range openDescriptors() {
		if n > 2 && isInherited(n) {
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
