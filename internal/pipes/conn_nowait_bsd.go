//go:build unix && !linux

package pipes

import "golang.org/x/sys/unix"

// writeNow is what these systems can't do.
func writeNow(Handle, []byte) (int, error) { return 0, unix.EOPNOTSUPP }
