//go:build unix

package demo

import (
	"fmt"
	"io"
	"os"
	"strconv"
	"syscall"
)

// handedWire opens the two descriptors by their numbers, as a script would, and
// keeps them from the server's subprocesses.
func handedWire(in, out string) (io.Reader, io.Writer, error) {
	r, err := handedFile("WIREGUARDRUN_IN", in)
	if err != nil {
		return nil, nil, err
	}
	w, err := handedFile("WIREGUARDRUN_OUT", out)
	if err != nil {
		return nil, nil, err
	}
	return r, w, nil
}

func handedFile(name, number string) (*os.File, error) {
	fd, err := strconv.Atoi(number)
	if err != nil || fd < 3 {
		return nil, fmt.Errorf("%s=%q is no descriptor above 2: start the server with wireguardrun", name, number)
	}
	syscall.CloseOnExec(fd)
	return os.NewFile(uintptr(fd), name), nil
}
