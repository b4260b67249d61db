package e2e

import (
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
	"syscall"
)

// handedWire is the server's wire, by the handles in the environment, or the
// standard handles without them.
func handedWire() (in io.Reader, out io.Writer) {
	record := os.Getenv("WIREGUARDRUN_HANDOVER")
	if record == "" {
		return os.Stdin, os.Stdout
	}
	return handedHandle(record, "in"), handedHandle(record, "out")
}

// handedHandle finds KEY=NUMBER:HANDLE@IDENTITY in the record.
func handedHandle(record, key string) *os.File {
	for field := range strings.SplitSeq(record, ";") {
		value, ok := strings.CutPrefix(field, key+"=")
		if !ok {
			continue
		}
		numbers, _, _ := strings.Cut(value, "@")
		_, handle, _ := strings.Cut(numbers, ":")
		h, err := strconv.ParseUint(handle, 16, strconv.IntSize)
		if err != nil {
			panic(fmt.Sprintf("%s: %v", record, err))
		}
		return os.NewFile(uintptr(h), "wire "+key)
	}
	panic("no " + key + " in " + record)
}

func closeDescriptor(n int) error {
	return syscall.EWINDOWS
}

func describe() childReport {
	r := childReport{Pid: os.Getpid(), Parent: os.Getppid()}
	for _, arg := range os.Args[1:] {
		r.Args = append(r.Args, []byte(arg))
	}
	for _, kv := range os.Environ() {
		r.Env = append(r.Env, []byte(kv))
	}
	var err error
	if r.Dir, err = os.Getwd(); err != nil {
		panic(err)
	}
	return r
}
