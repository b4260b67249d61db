package proc

import (
	"os"

	"golang.org/x/sys/unix"
)

// ownProgram returns a path to the program that we are. The link is followed by
// the system itself, so that it is this program even where its file has been
// replaced or removed since the start.
func ownProgram() (string, error) {
	const link = "/proc/self/exe"
	if unix.Access(link, unix.X_OK) == nil {
		return link, nil
	}
	return os.Executable()
}

// nameSelf sets what lists of processes show: after a start by the link above
// it is the link's name. A name that is not wireguardrun's also keeps us out of
// the way of whoever kills all programs of that name.
func nameSelf(name string) {
	fd, err := unix.Open("/proc/self/comm", unix.O_WRONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return
	}
	_, _ = unix.Write(fd, []byte(name))
	_ = unix.Close(fd)
}
