//go:build linux

package main

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
)

// memory reads how much is resident once a session is up, beside wrappers that
// are not in the path either.
func memory(t tools, _ settings) error {
	heading("Resident memory of the wrapper with its session up")
	row("| wrapper | resident MB |")
	row("|---|---|")
	wrappers := []kind{{name: "--wire=fds", prefix: []string{t.guard, "--wire=fds", "--"}, wire: wireHanded}}
	for _, w := range signalWrappers {
		if path, err := exec.LookPath(w[0]); err == nil {
			wrappers = append(wrappers, kind{name: w[0], prefix: append([]string{path}, w[1:]...), wire: wireStandard})
		}
	}
	for _, w := range wrappers {
		s, err := t.open(w, shortMessage, "wait")
		if err != nil {
			return err
		}
		if err := readFull(s.out, make([]byte, 1)); err != nil {
			return err
		}
		kB, err := memoryOf(s.middle, "VmRSS")
		if err != nil {
			return err
		}
		row("| %s | %.1f |", w.name, float64(kB)/1024)
		s.end()
	}
	return nil
}

// memoryOf returns VmRSS, what is resident, or VmHWM, the most that was, of a
// process in kB.
func memoryOf(pid int, what string) (kB int, err error) {
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return 0, err
	}
	_, rest, _ := bytes.Cut(status, []byte(what+":"))
	_, err = fmt.Sscanf(string(rest), "%d", &kB)
	return kB, err
}
