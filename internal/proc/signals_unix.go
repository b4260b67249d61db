//go:build unix

package proc

import (
	"os"
	"os/signal"
	"slices"
	"syscall"

	"golang.org/x/sys/unix"
)

var (
	terminate os.Signal = unix.SIGTERM
	proceed   os.Signal = unix.SIGCONT
)

func ending() []os.Signal { return []os.Signal{unix.SIGTERM, unix.SIGINT, unix.SIGHUP} }

func usual() []os.Signal {
	return []os.Signal{
		unix.SIGQUIT, unix.SIGUSR1, unix.SIGUSR2, unix.SIGALRM, unix.SIGWINCH, unix.SIGTSTP, unix.SIGCONT,
	}
}

// others lists the signals that mean something to a server and are in neither of
// the lists above. Left out are those that can't be caught, that tell of a fault
// in our own code, that the system sends about our own children and terminal,
// that Go uses itself (URG), and PIPE.
func others() []os.Signal {
	not := []unix.Signal{
		unix.SIGKILL, unix.SIGSTOP,
		unix.SIGSEGV, unix.SIGBUS, unix.SIGFPE, unix.SIGILL, unix.SIGTRAP, unix.SIGSYS,
		unix.SIGCHLD, unix.SIGTTIN, unix.SIGTTOU, unix.SIGURG, unix.SIGPIPE,
	}
	var list []os.Signal
	for n := range mostSignals {
		sig := unix.Signal(n + 1)
		if !slices.Contains(not, sig) && !slices.Contains(ending(), os.Signal(sig)) && !slices.Contains(usual(), os.Signal(sig)) && !reserved(sig) {
			list = append(list, sig)
		}
	}
	return list
}

func isTerminalStop(sig os.Signal) bool { return sig == unix.SIGTSTP }
func isContinue(sig os.Signal) bool     { return sig == unix.SIGCONT }

func stoppedForTerminal(sig int) bool {
	return syscall.Signal(sig) == unix.SIGTTIN || syscall.Signal(sig) == unix.SIGTTOU
}

func stopSelf() { _ = unix.Kill(unix.Getpid(), unix.SIGSTOP) }

// stopsInVain: the group of a session's leader is never a job of a shell. In
// another PID namespace than ours both have the number 0.
func stopsInVain(sig int) bool {
	session, err := unix.Getsid(0)
	return err == nil && session > 0 && session == unix.Getpgrp() && syscall.Signal(sig) == unix.SIGTSTP
}

func hangupIgnored() bool { return signal.Ignored(unix.SIGHUP) }

func isHangup(sig int) bool { return syscall.Signal(sig) == unix.SIGHUP }
