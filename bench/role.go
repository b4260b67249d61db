//go:build linux

package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"

	"golang.org/x/sys/unix"
)

// roleWord as the first argument makes this program the server of a session.
const roleWord = "as-server"

// Which descriptors a server uses.
const (
	wireStandard  = "standard"  // 0 and 1, whatever it was given
	wireHanded    = "handed"    // those that were handed down
	wireAnnounced = "announced" // the same, with an announcement
)

// playRole serves: "WIRE echo SIZE" answers each request of SIZE bytes by a
// response of the same size; "WIRE send SIZE PIECE" answers a short request and
// then writes messages of SIZE bytes, PIECE bytes at a time, until nobody reads
// them; "WIRE wait" ends with its input.
func playRole(args []string) error {
	in, out := 0, 1
	if args[0] != wireStandard {
		in, out = descriptor("WIREGUARDRUN_IN"), descriptor("WIREGUARDRUN_OUT")
	}
	if args[0] == wireAnnounced {
		if err := writeFull(out, []byte("\n")); err != nil {
			return err
		}
	}
	number := func(i int) int {
		if i >= len(args) {
			return 0
		}
		n, _ := strconv.Atoi(args[i])
		return n
	}
	switch args[1] {
	case "echo":
		return echo(in, out, number(2), nil)
	case "send":
		notices := repeat(notice(number(2)), number(3))
		return echo(in, out, shortMessage, func() error {
			for {
				if err := writeFull(out, notices); err != nil {
					return err
				}
			}
		})
	case "wait":
		if err := writeFull(out, []byte("\n")); err != nil { // "ready"
			return err
		}
		return ignoreEOF(readFull(in, make([]byte, 1)))
	default:
		return fmt.Errorf("no role %q", args[1])
	}
}

// echo answers requests of size bytes; then is what is done after the first.
func echo(in, out, size int, then func() error) error {
	asked, answer := make([]byte, size), response(size)
	for {
		if err := readFull(in, asked); err != nil {
			return ignoreEOF(err)
		}
		copy(answer[idAt:], asked[idAt:][:idSize])
		if err := writeFull(out, answer); err != nil {
			return err
		}
		if then != nil {
			return then()
		}
	}
}

func descriptor(variable string) int {
	n, err := strconv.Atoi(os.Getenv(variable))
	if err != nil {
		return -1
	}
	return n
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
	if errors.Is(err, io.EOF) {
		return nil
	}
	return err
}
