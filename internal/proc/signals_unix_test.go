//go:build unix

package proc

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"runtime"
	"strconv"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
)

func init() {
	roles["forward"] = func([]string) int {
		caught := ListenForward()
		fmt.Println("ready")
		for sig := range caught.C() {
			fmt.Println(sig)
			if sig == unix.SIGTERM {
				break
			}
		}
		return 0
	}
	roles["die"] = func(args []string) int {
		sig, err := strconv.Atoi(args[0])
		if err != nil {
			return 1
		}
		// As much as the system lets us leave behind.
		var limit unix.Rlimit
		if unix.Getrlimit(unix.RLIMIT_CORE, &limit) == nil {
			limit.Cur = limit.Max
			_ = unix.Setrlimit(unix.RLIMIT_CORE, &limit)
		}
		DieOf(sig)
		return 95
	}
}

// TERM, INT and HUP are passed on, but not what was ignored at the start.
func TestListenForward(t *testing.T) {
	// What is caught here is not ignored in what we start, also under nohup.
	caught := make(chan os.Signal, 1)
	signal.Notify(caught, unix.SIGHUP, unix.SIGINT)
	defer signal.Stop(caught)
	for _, test := range []struct{ ignored, want string }{
		{"", "hangup\ninterrupt\nterminated\n"},
		{"HUP", "interrupt\nterminated\n"},
		{"HUP INT", "terminated\n"},
	} {
		t.Run("ignored "+test.ignored, func(t *testing.T) {
			cmd := viaExec(t, "forward")
			cmd.Args = []string{"sh", "-c", `[ -z "$1" ] || trap "" $1; exec "$0"`, cmd.Path, test.ignored}
			cmd.Path = shell
			pipe, err := cmd.StdoutPipe()
			if err != nil {
				t.Fatal(err)
			}
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			out := bufio.NewReader(pipe)
			var got string
			for _, sig := range []os.Signal{nil, unix.SIGHUP, unix.SIGINT, unix.SIGTERM} {
				if sig != nil {
					if err := cmd.Process.Signal(sig); err != nil {
						t.Fatal(err)
					}
					if (sig == unix.SIGHUP && test.ignored != "") || (sig == unix.SIGINT && test.ignored == "HUP INT") {
						continue
					}
				}
				line, err := out.ReadString('\n')
				if err != nil {
					t.Fatal(err)
				}
				if sig != nil {
					got += line
				}
			}
			rest, err := io.ReadAll(out)
			if got += string(rest); got != test.want || err != nil {
				t.Errorf("%q, %v, want %q", got, err, test.want)
			}
			if err := cmd.Wait(); err != nil {
				t.Error(err)
			}
		})
	}
}

// Whoever waits for us sees the signal that the child died of, and no second
// core.
func TestDieOf(t *testing.T) {
	signals := []syscall.Signal{unix.SIGTERM, unix.SIGINT, unix.SIGHUP, unix.SIGPIPE, unix.SIGKILL}
	if runtime.GOOS == "linux" {
		// Elsewhere Go's runtime does not let go of these.
		signals = append(signals, unix.SIGSEGV, unix.SIGABRT, unix.SIGUSR1)
	}
	for _, sig := range signals {
		t.Run(sig.String(), func(t *testing.T) {
			cmd := viaExec(t, "die", strconv.Itoa(int(sig)))
			cmd.Dir = t.TempDir() // where a core would be
			var ended *exec.ExitError
			if err := cmd.Run(); !errors.As(err, &ended) {
				t.Fatal(err)
			}
			status := cmd.ProcessState.Sys().(syscall.WaitStatus)
			if !status.Signaled() || status.Signal() != sig || status.CoreDump() {
				t.Errorf("%v, want death by %v without a core", cmd.ProcessState, sig)
			}
			if left, err := os.ReadDir(cmd.Dir); err != nil || len(left) > 0 {
				t.Errorf("it left %v, %v", left, err)
			}
		})
	}
}
