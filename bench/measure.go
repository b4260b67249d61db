//go:build linux

package main

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"syscall"
	"time"
)

// startUp measures from the start of a command to its end, for a command that
// does nothing, behind each wrapper.
func startUp(t tools, rounds int) error {
	program, err := exec.LookPath("true")
	if err != nil {
		return err
	}
	type starter struct {
		name  string
		argv  []string
		times []time.Duration
	}
	starters := []*starter{
		{name: "bare", argv: []string{program}},
		{name: "wireguardrun --", argv: []string{t.guard, "--", program}},
	}
	for _, f := range floors {
		starters = append(starters, &starter{name: f.what, argv: []string{t.floor(f.dir), program}})
	}
	var absent []string
	for _, w := range [][]string{{"env"}, {"tini", "-s", "--"}, {"dumb-init"}, {"catatonit", "--"}} {
		path, err := exec.LookPath(w[0])
		if err != nil {
			absent = append(absent, w[0])
			continue
		}
		argv := append([]string{path}, w[1:]...)
		starters = append(starters, &starter{name: w[0], argv: append(argv, program)})
	}
	null, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
	if err != nil {
		return err
	}
	defer null.Close()
	files := []uintptr{null.Fd(), null.Fd(), null.Fd()}
	const warmUp = 10
	for round := range rounds + warmUp {
		for _, s := range starters {
			begin := time.Now()
			pid, err := syscall.ForkExec(s.argv[0], s.argv, &syscall.ProcAttr{Env: os.Environ(), Files: files})
			if err != nil {
				return fmt.Errorf("start %q: %w", s.argv, err)
			}
			var status syscall.WaitStatus
			if _, err := syscall.Wait4(pid, &status, 0, nil); err != nil {
				return err
			}
			if status != 0 {
				return fmt.Errorf("%q ended with status %#x", s.argv, status)
			}
			if round >= warmUp {
				s.times = append(s.times, time.Since(begin))
			}
		}
	}
	// The lower quartile: what else the machine does only adds to a start.
	const q = 0.25
	bare := quantile(starters[0].times, q)
	var tini time.Duration
	for _, s := range starters {
		if s.name == "tini" {
			tini = quantile(s.times, q) - bare
		}
	}
	heading("Start to end of a program that does nothing, %d starts each, in turns", rounds)
	row("| behind | lower quartile ms | best ms | added ms | added / tini's |")
	row("|---|---|---|---|---|")
	for _, s := range starters {
		usual := quantile(s.times, q)
		ratio := "-"
		if tini > 0 {
			ratio = fmt.Sprintf("%.2f", float64(usual-bare)/float64(tini))
		}
		row("| %s | %.2f | %.2f | %.2f | %s |", s.name, ms(usual), ms(s.times[0]), ms(usual-bare), ratio)
	}
	for _, name := range absent {
		row("\nnot installed, left out: %s", name)
	}
	return nil
}

func ms(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }
func us(d time.Duration) float64 { return float64(d) / float64(time.Microsecond) }

// roundTrips measures messages of 100 bytes there and back.
func roundTrips(t tools, trips int) error {
	const size = 100
	kinds := t.kinds()
	sessions := make([]*session, len(kinds))
	for i, k := range kinds {
		s, err := open(t.server(k.prefix, "echo", strconv.Itoa(size))...)
		if err != nil {
			return err
		}
		sessions[i] = s
	}
	times := make([][]time.Duration, len(kinds))
	message := bytes.Repeat([]byte{'x'}, size)
	const batch = 100 // in turns, but not cold at every trip
	for done := 0; done < trips; done += batch {
		for i, s := range sessions {
			for range batch {
				begin := time.Now()
				if err := writeFull(s.in, message); err != nil {
					return err
				}
				if err := readFull(s.out, message); err != nil {
					return err
				}
				times[i] = append(times[i], time.Since(begin))
			}
		}
	}
	for _, s := range sessions {
		if err := s.close(); err != nil {
			return err
		}
	}
	heading("Round trip of %d bytes, %d trips each, in turns", size, trips)
	row("| server | p50 µs | p99 µs | p50 / bare |")
	row("|---|---|---|---|")
	bare := quantile(times[0], 0.5)
	for i, k := range kinds {
		median := quantile(times[i], 0.5)
		row("| %s | %.1f | %.1f | %.2f |", k.name, us(median), us(quantile(times[i], 0.99)), float64(median)/float64(bare))
	}
	return nil
}

// throughput measures how fast a server's messages arrive.
func throughput(t tools) error {
	kinds := t.kinds()
	sizes := []struct{ message, total int }{{100, 50 << 20}, {4 << 10, 1 << 30}, {1 << 20, 1 << 30}}
	const rounds = 5
	heading("Server to client, best of %d rounds, in turns", rounds)
	row("| message | server | GB/s | / bare |")
	row("|---|---|---|---|")
	for _, size := range sizes {
		best := make([]float64, len(kinds))
		for range rounds {
			for i, k := range kinds {
				speed, err := receive(t.server(k.prefix, "send", strconv.Itoa(size.message), strconv.Itoa(size.total)), size.total)
				if err != nil {
					return err
				}
				best[i] = max(best[i], speed)
			}
		}
		for i, k := range kinds {
			row("| %d B | %s | %.2f | %.2f |", size.message, k.name, best[i], best[i]/best[0])
		}
	}
	return nil
}

// receive runs a server that sends total bytes, and returns GB/s from the
// first byte on.
func receive(argv []string, total int) (float64, error) {
	s, err := open(argv...)
	if err != nil {
		return 0, err
	}
	buf := make([]byte, 64<<10)
	if err := readFull(s.out, buf[:1]); err != nil {
		return 0, err
	}
	begin := time.Now()
	for left := total - 1; left > 0; {
		n, err := syscall.Read(s.out, buf)
		if err == syscall.EINTR {
			continue
		}
		if err != nil || n == 0 {
			return 0, fmt.Errorf("%q: %d bytes missing: %v", argv, left, err)
		}
		left -= n
	}
	speed := float64(total) / float64(time.Since(begin).Nanoseconds())
	return speed, s.close()
}

// memory reads how much is resident once a session is up.
func memory(t tools) error {
	heading("Resident memory of the wrapper with its session up")
	row("| wrapper | resident MB |")
	row("|---|---|")
	wrappers := []kind{{"wireguardrun --wire=fds", []string{t.guard, "--wire=fds", "--"}}}
	for _, w := range [][]string{{"tini", "-s", "--"}, {"dumb-init"}, {"catatonit", "--"}} {
		if path, err := exec.LookPath(w[0]); err == nil {
			wrappers = append(wrappers, kind{w[0], append([]string{path}, w[1:]...)})
		}
	}
	for _, w := range wrappers {
		s, err := open(t.server(w.prefix, "wait")...)
		if err != nil {
			return err
		}
		var ready [1]byte
		if err := readFull(s.out, ready[:]); err != nil {
			return err
		}
		kB, err := resident(s.cmd.Process.Pid)
		if err != nil {
			return err
		}
		row("| %s | %.1f |", w.name, float64(kB)/1024)
		if err := s.close(); err != nil {
			return err
		}
	}
	return nil
}

// resident returns VmRSS of a process in kB.
func resident(pid int) (kB int, err error) {
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return 0, err
	}
	_, rest, _ := bytes.Cut(status, []byte("VmRSS:"))
	_, err = fmt.Sscanf(string(rest), "%d", &kB)
	return kB, err
}
