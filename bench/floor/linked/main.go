//go:build unix

// Command linked is starter with the libraries that wireguardrun is built on
// linked in, whose initialisation runs at every start.
package main

import (
	"os"
	"syscall"

	_ "github.com/alecthomas/kong"
	_ "github.com/rs/zerolog"
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
