//go:build linux

package main

import (
	"fmt"
	"time"
)

// roundTrips measures messages there and back, and what is resident then.
func roundTrips(t tools, s settings) error {
	for _, size := range []int{shortMessage, 4 << 10} {
		if err := trips(t, size, s.trips); err != nil {
			return err
		}
	}
	return nil
}

func trips(t tools, size, n int) error {
	sessions := make([]*session, len(t.kinds))
	for i, k := range t.kinds {
		s, err := t.open(k, size, "echo", fmt.Sprint(size))
		if err != nil {
			return err
		}
		defer s.end()
		sessions[i] = s
	}
	times := make([][]time.Duration, len(t.kinds))
	const batch = 100 // in turns, but not cold at every trip
	for done := -batch; done < n; done += batch {
		for i, s := range sessions {
			for range batch {
				begin := time.Now()
				if err := s.trip(); err != nil {
					return err
				}
				if done >= 0 {
					times[i] = append(times[i], time.Since(begin))
				}
			}
		}
	}
	var least time.Duration // of the plain copy
	for i, k := range t.kinds {
		if k.name == copier {
			least = quantile(times[i], 0.5)
		}
	}
	heading("Round trip of %d bytes, %d trips each, in turns", size, n)
	row("| server behind | p50 µs | p99 µs | p50 / bare | p50 - plain copy µs | resident MB |")
	row("|---|---|---|---|---|---|")
	for i, k := range t.kinds {
		median := quantile(times[i], 0.5)
		mb := "-"
		if pid := sessions[i].middle; pid != 0 {
			kB, err := memoryOf(pid, "VmRSS")
			if err != nil {
				return err
			}
			mb = fmt.Sprintf("%.1f", float64(kB)/1024)
		}
		row("| %s | %.1f | %.1f | %.2f | %+.1f | %s |", k.name, us(median), us(quantile(times[i], 0.99)),
			float64(median)/float64(quantile(times[0], 0.5)), us(median-least), mb)
	}
	return nil
}
