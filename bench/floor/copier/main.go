// Command copier is the plainest relay: it starts a command with two pipes and
// copies both ways.
package main

import (
	"io"
	"os"
	"os/exec"
)

func main() { os.Exit(run(os.Args[1:])) }

func run(argv []string) int {
	cmd := exec.Command(argv[0], argv[1:]...)
	cmd.Stderr = os.Stderr
	stdin, err := cmd.StdinPipe()
	if err != nil {
		return 1
	}
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		return 1
	}
	if err := cmd.Start(); err != nil {
		return 1
	}
	go func() {
		_, _ = io.Copy(stdin, os.Stdin)
		_ = stdin.Close()
	}()
	_, _ = io.Copy(os.Stdout, stdout)
	_ = cmd.Wait()
	return cmd.ProcessState.ExitCode()
}
