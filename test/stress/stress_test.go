//go:build linux

package stress

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"
)

// atOnce is how many sessions run at a time: they mostly wait.
const atOnce = 8

func TestStress(t *testing.T) {
	sessions, seed := fromEnv(t, "WGR_STRESS", 60), fromEnv(t, "WGR_STRESS_SEED", 1)
	dir := t.TempDir()
	begun := time.Now()
	numbers := make(chan uint64)
	outcomes := make(chan outcome)
	var workers sync.WaitGroup
	for range atOnce {
		workers.Go(func() {
			for n := range numbers {
				s := newSession(dir, seed, n, kinds)
				o := s.run()
				s.end()
				outcomes <- o
			}
		})
	}
	only := os.Getenv("WGR_STRESS_KIND") // part of the names of the kinds to run
	go func() {
		for n := range sessions {
			if strings.Contains(kinds[n%uint64(len(kinds))].name, only) {
				numbers <- n
			}
		}
		close(numbers)
		workers.Wait()
		close(outcomes)
	}()
	sum := summary{rows: map[string]*figures{}}
	for o := range outcomes {
		sum.add(t, o)
	}
	for _, p := range processes(time.Now()) {
		if p.keeperOf != "" || strings.HasPrefix(p.mark, strconv.Itoa(os.Getpid())+"-") {
			sum.total.survivors++
			t.Errorf("left at the end of all: %+v", p)
		}
	}
	sum.print(seed, time.Since(begun))
}

func fromEnv(t *testing.T, name string, usual uint64) uint64 {
	text, ok := os.LookupEnv(name)
	if !ok {
		return usual
	}
	n, err := strconv.ParseUint(text, 10, 32)
	if err != nil {
		t.Fatalf("%s=%q: %v", name, text, err)
	}
	return n
}

type figures struct {
	sessions, survivors, lost, wrong, changed, notOurs, daemons, checked, frames int
	worst                                                                        time.Duration
}

func (f *figures) add(o outcome) {
	f.sessions++
	f.survivors += len(o.survivors)
	f.lost += o.lost
	f.wrong += o.wrong
	f.changed += len(o.changed)
	f.notOurs += o.notOurs
	f.daemons += o.daemons
	f.frames += o.frames
	if o.checked {
		f.checked++
	}
	f.worst = max(f.worst, o.took)
}

type summary struct {
	total figures
	rows  map[string]*figures
}

func (s *summary) add(t *testing.T, o outcome) {
	if o.err != nil {
		t.Errorf("%s: %s: %v", o.kind, o.details, o.err)
	}
	if len(o.survivors)+o.lost+o.wrong+len(o.changed) > 0 {
		t.Errorf("%s: %s: survivors %+v, frames lost %d, wrong %d, changed %v", o.kind, o.details, o.survivors, o.lost, o.wrong, o.changed)
	}
	row := s.rows[o.kind]
	if row == nil {
		row = &figures{}
		s.rows[o.kind] = row
	}
	row.add(o)
	s.total.add(o)
}

func (s *summary) print(seed uint64, took time.Duration) {
	var b strings.Builder
	t := s.total
	fmt.Fprintf(&b, "\n%d sessions (seed %d, %v), %d kinds of death: survivors %d, frames lost %d, flags changed %d; %d frames checked in %d sessions\n\n",
		t.sessions, seed, took.Round(time.Second), len(s.rows), t.survivors, t.lost+t.wrong, t.changed, t.frames, t.checked)
	b.WriteString("| kind | sessions | survivors | frames lost | flags changed | daemons that may stay | until gone, worst ms |\n|---|---|---|---|---|---|---|\n")
	for _, k := range kinds {
		if f := s.rows[k.name]; f != nil {
			fmt.Fprintf(&b, "| %s | %d | %d | %d | %d | %d | %d |\n", k.name, f.sessions, f.survivors, f.lost+f.wrong, f.changed, f.daemons, f.worst.Milliseconds())
		}
	}
	if t.notOurs > 0 {
		fmt.Fprintf(&b, "\nleft changed by a wrapper that was killed, which nobody can help: %d\n", t.notOurs)
	}
	_, _ = os.Stdout.WriteString(b.String())
}
