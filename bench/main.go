//go:build linux

package main

import (
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
)

func main() {
	if len(os.Args) > 1 && os.Args[1] == roleWord {
		if err := playRole(os.Args[2:]); err != nil {
			fmt.Fprintln(os.Stderr, "bench:", err)
			os.Exit(1)
		}
		return
	}
	rounds := flag.Int("rounds", 400, "starts of each command")
	trips := flag.Int("trips", 20000, "round trips of each kind")
	flag.Parse()
	if err := run(*rounds, *trips); err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

// tools are the programs that are measured.
type tools struct {
	self  string // this program, which is the server of all sessions
	guard string // wireguardrun
	dir   string // where it and the floor programs are
}

// floors are programs that do less than wireguardrun, to show what can't be
// saved.
var floors = []struct{ dir, what string }{
	{"idle", "a Go program that does nothing (and starts nothing)"},
	{"starter", "a Go program that only starts it"},
	{"linked", "the same, with kong and zerolog linked in"},
}

func (t tools) floor(dir string) string { return filepath.Join(t.dir, dir) }

func run(rounds, trips int) error {
	dir, err := os.MkdirTemp("", "wireguardrun-bench")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	t, err := build(dir)
	if err != nil {
		return err
	}
	for _, measure := range []func() error{
		func() error { return startUp(t, rounds) },
		func() error { return roundTrips(t, trips) },
		func() error { return throughput(t) },
		func() error { return memory(t) },
	} {
		if err := measure(); err != nil {
			return err
		}
	}
	return nil
}

// build makes the programs as a release does: static and stripped.
func build(dir string) (tools, error) {
	self, err := os.Executable()
	if err != nil {
		return tools{}, err
	}
	t := tools{self: self, guard: filepath.Join(dir, "wireguardrun"), dir: dir}
	const module = "github.com/wireguardrun/wireguardrun"
	programs := map[string]string{t.guard: module + "/cmd/wireguardrun"}
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
