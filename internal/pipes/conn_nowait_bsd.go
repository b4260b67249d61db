//go:build unix && !linux

package pipes

import "golang.org/x/sys/unix"

// writeNow: these systems have no such call.
func writeNow(Handle, []byte) (int, error) { return 0, unix.EOPNOTSUPP }
