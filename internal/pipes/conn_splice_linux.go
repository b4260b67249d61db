package pipes

import "golang.org/x/sys/unix"

// canSplice: only between two pipes does the kernel promise never to wait.
func canSplice(src, dst Handle) bool { return isPipe(src) && isPipe(dst) }

func isPipe(h Handle) bool {
	var st unix.Stat_t
	return unix.Fstat(int(h), &st) == nil && st.Mode&unix.S_IFMT == unix.S_IFIFO
}

// spliceHandle moves what it can without waiting.
func spliceHandle(src, dst Handle, limit int) int {
	n, err := unix.Splice(int(src), nil, int(dst), nil, limit, unix.SPLICE_F_MOVE|unix.SPLICE_F_NONBLOCK)
	if err != nil {
		return 0
	}
	return int(n)
}
