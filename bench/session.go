//go:build linux

package main

import (
	"fmt"
	"os"
	"os/exec"
	"slices"
	"time"

	"golang.org/x/sys/unix"
)

// session is one server and the client's ends of its wire.
type session struct {
	cmd     *exec.Cmd
	in, out int // we write to in and read from out
}

// open starts argv with pipes as its standard input and output.
func open(argv ...string) (*session, error) {
	var toServer, fromServer [2]int
	if err := unix.Pipe2(toServer[:], unix.O_CLOEXEC); err != nil {
		return nil, err
	}
	if err := unix.Pipe2(fromServer[:], unix.O_CLOEXEC); err != nil {
		return nil, err
	}
	stdin, stdout := os.NewFile(uintptr(toServer[0]), "in"), os.NewFile(uintptr(fromServer[1]), "out")
	defer stdin.Close()
	defer stdout.Close()
	cmd := exec.Command(argv[0], argv[1:]...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = stdin, stdout, os.Stderr
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("start %q: %w", argv, err)
	}
	return &session{cmd, toServer[1], fromServer[0]}, nil
}

// close ends the server's input and waits for its end.
func (s *session) close() error {
	_ = unix.Close(s.in)
	err := s.cmd.Wait()
	_ = unix.Close(s.out)
	return err
}

// server is the argument vector of a server role, behind prefix.
func (t tools) server(prefix []string, role ...string) []string {
	return slices.Concat(prefix, []string{t.self, roleWord}, role)
}

// kinds are the ways to start a server that are compared.
func (t tools) kinds() []kind {
	return []kind{{"bare", nil}, {"wireguardrun --wire=fds", []string{t.guard, "--wire=fds", "--"}}}
}

type kind struct {
	name   string
	prefix []string
}

// quantile returns the q-quantile of times, which it sorts.
func quantile(times []time.Duration, q float64) time.Duration {
	slices.Sort(times)
	return times[min(int(q*float64(len(times))), len(times)-1)]
}

func heading(format string, args ...any) { fmt.Printf("\n"+format+"\n\n", args...) }

func row(format string, args ...any) { fmt.Printf(format+"\n", args...) }
