package pipes

import "golang.org/x/sys/unix"

// writeNow writes what can be written without waiting, whatever the description
// of h says. It returns EAGAIN where that is nothing and EOPNOTSUPP where the
// system can't do it: pipes and sockets of older kernels, terminals.
func writeNow(h Handle, p []byte) (int, error) {
	const current = -1 // where the description stands, as write(2)
	return unix.Pwritev2(int(h), [][]byte{p}, current, unix.RWF_NOWAIT)
}
