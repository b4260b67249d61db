//go:build unix

// Command starter is the least that a Go program costs which starts another
// and waits for it.
package main

import (
	"os"
	"syscall"
)

func main() {
	os.Exit(start(os.Args[1:]))
}

func start(argv []string) int {
	pid, err := syscall.ForkExec(argv[0], argv, &syscall.ProcAttr{Env: os.Environ(), Files: []uintptr{0, 1, 2}})
	if err != nil {
		return 1
	}
	var status syscall.WaitStatus
	if _, err := syscall.Wait4(pid, &status, 0, nil); err != nil {
		return 1
	}
	return status.ExitStatus()
}
