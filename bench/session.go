//go:build linux

package main

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"time"

	"golang.org/x/sys/unix"
)

// session is one server and the client's ends of its wire.
type session struct {
	cmds    []*exec.Cmd
	middle  int // the process between server and client, 0 if there is none
	in, out int // we write to in and read from out

	request, answer []byte
	trips           int
}

// open starts a server role, with messages of size bytes there and back.
func (t tools) open(k kind, size int, role ...string) (*session, error) {
	s := &session{request: request(size), answer: make([]byte, size), out: -1}
	stages := [][]string{t.server(k, role...)}
	if k.behind != nil {
		stages = append(stages, k.behind)
	}
	r, w, err := pipe()
	if err != nil {
		return nil, err
	}
	s.in = w
	for _, argv := range stages {
		stdin := os.NewFile(uintptr(r), "in")
		r, w, err = pipe()
		if err != nil {
			return nil, err
		}
		stdout := os.NewFile(uintptr(w), "out")
		cmd := exec.Command(argv[0], argv[1:]...)
		cmd.Stdin, cmd.Stdout = stdin, stdout // stderr goes nowhere
		err := cmd.Start()
		_ = stdin.Close()
		_ = stdout.Close()
		if err != nil {
			return nil, fmt.Errorf("start %q: %w", argv, err)
		}
		s.cmds = append(s.cmds, cmd)
		if k.name != bare {
			s.middle = cmd.Process.Pid
		}
	}
	s.out = r
	return s, nil
}

func pipe() (r, w int, err error) {
	var fds [2]int
	err = unix.Pipe2(fds[:], unix.O_CLOEXEC)
	return fds[0], fds[1], err
}

// trip sends a request, waits for the response and checks that it is its own.
func (s *session) trip() error {
	setID(s.request, s.trips)
	s.trips++
	if err := writeFull(s.in, s.request); err != nil {
		return err
	}
	if err := readFull(s.out, s.answer); err != nil {
		return fmt.Errorf("%q: the answer is missing: %w", s.cmds[0].Args, err)
	}
	if !bytes.Equal(s.answer[:idAt+idSize], s.request[:idAt+idSize]) {
		return fmt.Errorf("%q: answered %.60q, asked %.60q", s.cmds[0].Args, s.answer, s.request)
	}
	return nil
}

// end closes the wire, which ends server and wrapper, and waits for that. How
// they end when the client goes away in the middle of a message is their own
// affair.
func (s *session) end() {
	_ = unix.Close(s.in)
	_ = unix.Close(s.out)
	for _, cmd := range s.cmds {
		_ = cmd.Wait()
	}
}

// quantile returns the q-quantile of times, which it sorts.
func quantile(times []time.Duration, q float64) time.Duration {
	slices.Sort(times)
	return times[min(int(q*float64(len(times))), len(times)-1)]
}

func heading(format string, args ...any) { fmt.Printf("\n### "+format+"\n\n", args...) }

func row(format string, args ...any) { fmt.Printf(format+"\n", args...) }
