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
	idle  string // a Go program that does nothing
}

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
	t := tools{self: self, guard: filepath.Join(dir, "wireguardrun"), idle: filepath.Join(dir, "idle")}
	source := filepath.Join(dir, "idle.go")
	if err := os.WriteFile(source, []byte("package main\n\nfunc main() {}\n"), 0o600); err != nil {
		return tools{}, err
	}
	for output, what := range map[string]string{
		t.guard: "github.com/wireguardrun/wireguardrun/cmd/wireguardrun",
		t.idle:  source,
	} {
		cmd := exec.Command("go", "build", "-trimpath", "-ldflags=-s -w", "-o", output, what)
		cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
		cmd.Stderr = os.Stderr
		if err := cmd.Run(); err != nil {
			return tools{}, fmt.Errorf("go build %s: %w", what, err)
		}
	}
	return t, nil
}
