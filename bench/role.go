//go:build linux

package main

import (
	"fmt"
	"io"
	"os"
	"strconv"

	"golang.org/x/sys/unix"
)

// roleWord as the first argument makes this program the server of a session.
const roleWord = "as-server"

// playRole serves on the descriptors that were handed down, or on 0 and 1:
// "echo SIZE" sends back each message of SIZE bytes, "send SIZE TOTAL" writes
// TOTAL bytes in messages of SIZE, "wait" ends with its input.
func playRole(args []string) error {
	in, out := descriptor("WIREGUARDRUN_IN", 0), descriptor("WIREGUARDRUN_OUT", 1)
	number := func(i int) int {
		if i >= len(args) {
			return 0
		}
		n, _ := strconv.Atoi(args[i])
		return n
	}
	buf := make([]byte, max(number(1), 1))
	switch args[0] {
	case "echo":
		for {
			if err := readFull(in, buf); err != nil {
				return ignoreEOF(err)
			}
			if err := writeFull(out, buf); err != nil {
				return err
			}
		}
	case "send":
		for left := number(2); left > 0; left -= len(buf) {
			if err := writeFull(out, buf); err != nil {
				return err
			}
		}
		return nil
	case "wait":
		if err := writeFull(out, buf); err != nil { // "ready"
			return err
		}
		return ignoreEOF(readFull(in, buf))
	default:
		return fmt.Errorf("no role %q", args[0])
	}
}

func descriptor(variable string, usual int) int {
	if n, err := strconv.Atoi(os.Getenv(variable)); err == nil {
		return n
	}
	return usual
}

// Plain blocking calls: Go's poller would add its own time to every session.

func readFull(fd int, p []byte) error {
	for len(p) > 0 {
		n, err := unix.Read(fd, p)
		switch {
		case err == unix.EINTR:
		case err != nil:
			return err
		case n == 0:
			return io.EOF
		default:
			p = p[n:]
		}
	}
	return nil
}

func writeFull(fd int, p []byte) error {
	for len(p) > 0 {
		n, err := unix.Write(fd, p)
		if err != nil && err != unix.EINTR {
			return err
		}
		p = p[max(n, 0):]
	}
	return nil
}

func ignoreEOF(err error) error {
	if err == io.EOF {
		return nil
	}
	return err
}
