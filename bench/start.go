//go:build linux

package main

import (
	"fmt"
	"os"
	"os/exec"
	"slices"
	"syscall"
	"time"
)

// starter is a command that does nothing, behind a wrapper.
type starter struct {
	name  string
	argv  []string
	times []time.Duration // from its start to its end
	cpu   []time.Duration // of all its processes
}

// startUp measures from the start of a command to its end, for a command that
// does nothing, behind each wrapper.
func startUp(t tools, s settings) error {
	starters, absent, err := t.starters()
	if err != nil {
		return err
	}
	null, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
	if err != nil {
		return err
	}
	defer null.Close()
	files := []uintptr{null.Fd(), null.Fd(), null.Fd()}
	const warmUp = 10
	for round := range s.starts + warmUp {
		for _, starter := range starters {
			took, cpu, err := starter.run(files)
			if err != nil {
				return err
			}
			if round >= warmUp {
				starter.times = append(starter.times, took)
				starter.cpu = append(starter.cpu, cpu)
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
	heading("Start to end of a program that does nothing, %d starts each, in turns", s.starts)
	row("| behind | lower quartile ms | best ms | added ms | added / tini's | processor ms |")
	row("|---|---|---|---|---|---|")
	for _, s := range starters {
		usual := quantile(s.times, q)
		ratio := "-"
		if tini > 0 {
			ratio = fmt.Sprintf("%.2f", float64(usual-bare)/float64(tini))
		}
		row("| %s | %.2f | %.2f | %.2f | %s | %.2f |", s.name, ms(usual), ms(s.times[0]), ms(usual-bare), ratio, ms(quantile(s.cpu, q)))
	}
	for _, name := range absent {
		row("\nnot installed, left out: %s", name)
	}
	return nil
}

// starters lists what startUp measures, the bare command first, and the names of
// the wrappers that are not installed.
func (t tools) starters() (list []*starter, absent []string, err error) {
	program, err := exec.LookPath("true")
	if err != nil {
		return nil, nil, err
	}
	list = []*starter{
		{name: "bare", argv: []string{program}},
		{name: "wireguardrun --", argv: []string{t.guard, "--", program}},
		{name: "wireguardrun --wire=fds --", argv: []string{t.guard, "--wire=fds", "--", program}},
		{name: "the same with --keeper=no", argv: []string{t.guard, "--wire=fds", "--keeper=no", "--", program}},
	}
	for _, f := range floors {
		list = append(list, &starter{name: f.what, argv: []string{t.floor(f.dir), program}})
	}
	for _, w := range slices.Concat([][]string{{"env"}}, signalWrappers) {
		path, err := exec.LookPath(w[0])
		if err != nil {
			absent = append(absent, w[0])
			continue
		}
		list = append(list, &starter{name: w[0], argv: slices.Concat([]string{path}, w[1:], []string{program})})
	}
	return list, absent, nil
}

// run runs the command once, with files as its descriptors.
func (s *starter) run(files []uintptr) (took, cpu time.Duration, err error) {
	begin := time.Now()
	pid, err := syscall.ForkExec(s.argv[0], s.argv, &syscall.ProcAttr{Env: os.Environ(), Files: files})
	if err != nil {
		return 0, 0, fmt.Errorf("start %q: %w", s.argv, err)
	}
	var status syscall.WaitStatus
	var used syscall.Rusage
	if _, err := syscall.Wait4(pid, &status, 0, &used); err != nil {
		return 0, 0, err
	}
	took = time.Since(begin)
	if status != 0 {
		return 0, 0, fmt.Errorf("%q ended with status %#x", s.argv, status)
	}
	return took, time.Duration(used.Utime.Nano() + used.Stime.Nano()), nil
}

// firstReply measures from the start of a server to the response to its first
// request, which was written before.
func firstReply(t tools, s settings) error {
	times := make([][]time.Duration, len(t.kinds))
	for range s.replies {
		for i, k := range t.kinds {
			begin := time.Now()
			session, err := t.open(k, shortMessage, "echo", fmt.Sprint(shortMessage))
			if err != nil {
				return err
			}
			if err := session.trip(); err != nil {
				return err
			}
			times[i] = append(times[i], time.Since(begin))
			session.end()
		}
	}
	const q = 0.25
	least := quantile(times[0], q)
	heading("Start to the first reply of a server in Go, %d starts each, in turns", s.replies)
	row("| server behind | lower quartile ms | added ms |")
	row("|---|---|---|")
	for i, k := range t.kinds {
		usual := quantile(times[i], q)
		row("| %s | %.1f | %.1f |", k.name, ms(usual), ms(usual-least))
	}
	return nil
}

func ms(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }
func us(d time.Duration) float64 { return float64(d) / float64(time.Microsecond) }
