//go:build linux

package main

import (
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// settings say how much is measured.
type settings struct {
	starts, replies, trips, rounds int
	window                         time.Duration // of one measurement of throughput
	only                           string        // part of the names of what is compared
}

// table is something to measure, and how often.
type table struct {
	name    string
	measure func(tools, settings) error
	oneCPU  bool // again with everything on one processor
}

var tables = []table{
	{"start", startUp, true},
	{"reply", firstReply, false},
	{"trips", roundTrips, true},
	{"throughput", throughput, true},
	{"memory", memory, false},
}

func main() {
	if len(os.Args) > 1 && os.Args[1] == roleWord {
		if err := playRole(os.Args[2:]); err != nil {
			fmt.Fprintln(os.Stderr, "bench:", err)
			os.Exit(1)
		}
		return
	}
	var names []string
	for _, t := range tables {
		names = append(names, t.name)
	}
	var s settings
	which := flag.String("tables", strings.Join(names, ","), "tables to print")
	cpus := flag.String("cpus", "all,one", "measure on all processors, on one, or on both in turn")
	guard := flag.String("guard", "", "wireguardrun binary to measure, instead of building one")
	flag.IntVar(&s.starts, "starts", 400, "starts of each command that does nothing")
	flag.IntVar(&s.replies, "replies", 40, "starts to the first reply, of each kind")
	flag.IntVar(&s.trips, "trips", 10000, "round trips of each kind and size")
	flag.IntVar(&s.rounds, "rounds", 5, "measurements of each throughput, of which the best counts")
	flag.DurationVar(&s.window, "window", 300*time.Millisecond, "length of one measurement of throughput")
	flag.StringVar(&s.only, "only", "", "compare only what has this in its name")
	flag.Parse()
	if err := run(strings.Split(*which, ","), strings.Split(*cpus, ","), *guard, s); err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

// tools are the programs that are measured.
type tools struct {
	self  string // this program, which is the server of all sessions
	guard string // wireguardrun
	dir   string // where it, the floor programs and the filters are
	kinds []kind
}

// floors are programs that do less than wireguardrun, to show what can't be
// saved.
var floors = []struct{ dir, what string }{
	{"idle", "a Go program that does nothing (and starts nothing)"},
	{"starter", "a Go program that only starts it"},
	{"linked", "the same, with kong and zerolog linked in"},
}

func (t tools) floor(dir string) string { return filepath.Join(t.dir, dir) }

func run(which, cpus []string, guard string, s settings) error {
	dir, err := os.MkdirTemp("", "wireguardrun-bench")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	t, err := build(dir, guard)
	if err != nil {
		return err
	}
	absent, err := t.compared(s.only)
	if err != nil {
		return err
	}
	// Processes inherit the processors of the thread that starts them.
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	var all unix.CPUSet
	if err := unix.SchedGetaffinity(0, &all); err != nil {
		return err
	}
	for _, place := range cpus {
		one := place == "one"
		if one {
			if err := unix.SchedSetaffinity(0, firstOf(&all)); err != nil {
				return err
			}
			row("\n## Everything on one processor")
		} else {
			row("\n## On %d processors", all.Count())
		}
		for _, table := range tables {
			if !slices.Contains(which, table.name) || one && !table.oneCPU {
				continue
			}
			if err := table.measure(t, s); err != nil {
				return fmt.Errorf("%s: %w", table.name, err)
			}
		}
	}
	if len(absent) > 0 {
		row("\nNot installed, left out: %s", strings.Join(absent, ", "))
	}
	return nil
}

func firstOf(set *unix.CPUSet) *unix.CPUSet {
	var one unix.CPUSet
	for n := range 64 * len(set) { // more than it has bits, where a word has 32
		if set.IsSet(n) {
			one.Set(n)
			break
		}
	}
	return &one
}

// build makes the programs as a release does: static and stripped.
func build(dir, guard string) (tools, error) {
	self, err := os.Executable()
	if err != nil {
		return tools{}, err
	}
	t := tools{self: self, guard: guard, dir: dir}
	const module = "github.com/wireguardrun/wireguardrun"
	programs := map[string]string{t.floor("copier"): module + "/bench/floor/copier"}
	if guard == "" {
		t.guard = filepath.Join(dir, "wireguardrun")
		programs[t.guard] = module + "/cmd/wireguardrun"
	}
	for _, f := range floors {
		programs[t.floor(f.dir)] = module + "/bench/floor/" + f.dir
	}
	for output, what := range programs {
		cmd := exec.Command("go", "build", "-trimpath", "-ldflags=-s -w", "-o", output, what)
		cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
		cmd.Stderr = os.Stderr
		if err := cmd.Run(); err != nil {
			return tools{}, fmt.Errorf("go build %s: %w", what, err)
		}
	}
	return t, nil
}
