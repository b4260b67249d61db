//go:build linux

package main

import (
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"sync"
	"time"
)

// atOnce is how many sessions run at a time: they mostly wait.
const atOnce = 8

func main() {
	if len(os.Args) > 1 && os.Args[1] == clientWord {
		os.Exit(playClient(os.Args[2:]))
	}
	deaths := flag.Int("deaths", 200, "deaths of clients, of each kind")
	lives := flag.Int("lives", 50, "sessions in which nothing may end early, of each kind")
	guard := flag.String("guard", "", "wireguardrun binary to measure, instead of building one")
	flag.Parse()
	if err := run(*guard, *deaths, *lives); err != nil {
		fmt.Fprintln(os.Stderr, "life:", err)
		os.Exit(1)
	}
}

func run(guard string, deaths, lives int) error {
	dir, err := os.MkdirTemp("", "wireguardrun-life")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	if guard == "" {
		guard = filepath.Join(dir, "wireguardrun")
		cmd := exec.Command("go", "build", "-trimpath", "-ldflags=-s -w", "-o", guard, "github.com/wireguardrun/wireguardrun/cmd/wireguardrun")
		cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
		cmd.Stderr = os.Stderr
		if err := cmd.Run(); err != nil {
			return fmt.Errorf("go build: %w", err)
		}
	}
	if guard, err = filepath.Abs(guard); err != nil {
		return err
	}
	if err := measureDeaths(guard, dir, deaths); err != nil {
		return err
	}
	return countLives(guard, dir, lives)
}

// inTurns runs n trials of each kind, several at once.
func inTurns(kinds, n int, trial func(kind, n int)) {
	type turn struct{ kind, n int }
	turns := make(chan turn)
	var workers sync.WaitGroup
	for range atOnce {
		workers.Go(func() {
			for t := range turns {
				trial(t.kind, t.n)
			}
		})
	}
	for i := range n {
		for k := range kinds {
			turns <- turn{k, i}
		}
	}
	close(turns)
	workers.Wait()
}

func quantile(times []time.Duration, q float64) time.Duration {
	if len(times) == 0 {
		return 0
	}
	slices.Sort(times)
	return times[int(q*float64(len(times)-1)+0.5)]
}

func heading(format string, args ...any) { fmt.Printf("\n## "+format+"\n\n", args...) }
func row(format string, args ...any)     { fmt.Printf(format+"\n", args...) }
