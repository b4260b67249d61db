//go:build linux

package main

import (
	"fmt"
	"time"

	"golang.org/x/sys/unix"
)

// throughput measures how fast a server's messages arrive, and what the
// process in the middle needs for it.
func throughput(t tools, s settings) error {
	for _, load := range []struct {
		name        string
		size, piece int
	}{
		{"100 B, one write each", 100, 0},
		{"100 B, 64 kB a write", 100, 64 << 10},
		{"4 kB", 4 << 10, 0},
		{"1 MB", 1 << 20, 0},
	} {
		best := make([]flow, len(t.kinds))
		for range s.rounds {
			for i, k := range t.kinds {
				f, err := t.receive(k, s.window, load.size, load.piece)
				if err != nil {
					return err
				}
				best[i].add(f)
			}
		}
		heading("Server to client, messages of %s, best of %d times %v, in turns", load.name, s.rounds, s.window)
		row("| server behind | GB/s | / bare | / plain copy | CPU s/GB in the middle | most resident MB |")
		row("|---|---|---|---|---|---|")
		var plain float64
		for i, k := range t.kinds {
			if k.name == copier {
				plain = best[i].speed
			}
		}
		for i, k := range t.kinds {
			cpu, mb := "-", "-"
			if best[i].peak > 0 {
				cpu, mb = fmt.Sprintf("%.2f", best[i].cpu), fmt.Sprintf("%.1f", float64(best[i].peak)/1024)
			}
			row("| %s | %.3f | %.2f | %.2f | %s | %s |", k.name, best[i].speed, best[i].speed/best[0].speed, best[i].speed/plain, cpu, mb)
		}
	}
	return nil
}

// flow is one measurement of throughput.
type flow struct {
	speed float64 // GB/s
	cpu   float64 // seconds per GB, of the process in the middle
	peak  int     // kB, most that was resident there
}

func (f *flow) add(g flow) {
	f.speed = max(f.speed, g.speed)
	if f.cpu == 0 || g.cpu < f.cpu {
		f.cpu = g.cpu
	}
	f.peak = max(f.peak, g.peak)
}

// receive runs a server that sends without end, for a window of time.
func (t tools) receive(k kind, window time.Duration, size, piece int) (f flow, err error) {
	s, err := t.open(k, shortMessage, "send", fmt.Sprint(size), fmt.Sprint(piece))
	if err != nil {
		return f, err
	}
	defer s.end()
	if err := s.trip(); err != nil {
		return f, err
	}
	buf := make([]byte, 64<<10)
	read := func(window time.Duration) (total int, took time.Duration, err error) {
		begin := time.Now()
		for took < window {
			n, err := unix.Read(s.out, buf)
			if err != nil && err != unix.EINTR || n == 0 {
				return 0, 0, fmt.Errorf("%s: the messages end: %w", k.name, err)
			}
			total += max(n, 0)
			took = time.Since(begin)
		}
		return total, took, nil
	}
	if _, _, err := read(window / 10); err != nil { // to warm up
		return f, err
	}
	before := cpuTime(s.middle)
	total, took, err := read(window)
	if err != nil {
		return f, err
	}
	f.speed = float64(total) / float64(took.Nanoseconds())
	if s.middle != 0 {
		f.cpu = (cpuTime(s.middle) - before).Seconds() / (float64(total) / 1e9)
		f.peak, err = memoryOf(s.middle, "VmHWM")
	}
	return f, err
}

// cpuTime returns the processor time that a process has used, all threads
// together.
func cpuTime(pid int) time.Duration {
	// clock_getcpuclockid(3): the clock of a process is its number inverted,
	// and 2 for the time that the scheduler counts.
	const scheduled = 2
	var ts unix.Timespec
	if pid == 0 || unix.ClockGettime(int32(^pid<<3|scheduled), &ts) != nil {
		return 0
	}
	return time.Duration(ts.Nano())
}
