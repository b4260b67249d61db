//go:build unix

package proc

import (
	"os"
	"os/signal"
	"strconv"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/wireguardrun/wireguardrun/internal/pipes"
)

// keeperPipe is the keeper's only descriptor beside its standard ones.
const keeperPipe = 3

type keeper struct {
	id   int
	line pipes.Handle // the write end, ours
}

func startKeeper(run string) (keeper, error) {
	self, err := ownProgram()
	if err != nil {
		return keeper{}, err
	}
	r, w, err := pipes.Pipe()
	if err != nil {
		return keeper{}, err
	}
	defer func() { _ = pipes.Close(r) }()
	null, err := pipes.OpenNull()
	if err != nil {
		_ = pipes.Close(w)
		return keeper{}, err
	}
	defer func() { _ = pipes.Close(null) }()
	pid, err := syscall.ForkExec(self, []string{KeeperStage, run}, &syscall.ProcAttr{
		Dir: "/", // no file system is kept busy
		// Without the mark of the run, or it would kill itself. The last one
		// keeps Go's runtime from holding files of the control group open.
		Env:   []string{"GOMAXPROCS=1", "GOGC=off", "GODEBUG=containermaxprocs=0"},
		Files: []uintptr{uintptr(null), uintptr(null), uintptr(null), uintptr(r)},
		Sys:   &syscall.SysProcAttr{Setsid: true},
	})
	if err != nil {
		_ = pipes.Close(w)
		return keeper{}, &os.PathError{Op: "start the keeper", Path: self, Err: err}
	}
	return keeper{id: pid, line: w}, nil
}

func (k keeper) pid() int { return k.id }

// dismiss kills, since that needs nothing of a keeper that is just starting.
func (k keeper) dismiss() {
	_ = unix.Kill(k.id, unix.SIGKILL)
	_ = pipes.Close(k.line)
}

func (k keeper) wait() {
	for {
		if _, err := unix.Wait4(k.id, nil, 0, nil); err != unix.EINTR {
			return
		}
	}
}

func (k keeper) say(word byte) {
	_, _ = unix.Write(int(k.line), []byte{word})
	_ = pipes.Close(k.line)
}

func runKeeper(argv []string) {
	if len(argv) < 2 || argv[1] == "" {
		return
	}
	t := Tree{run: argv[1]}
	nameSelf("wgr-keeper")
	// What wireguardrun has inherited was for the server.
	for _, n := range openDescriptors() {
		if n > keeperPipe && isInherited(n) {
			_ = pipes.Close(pipes.Handle(n))
		}
	}
	// Whoever ends all programs of our name must not end us first. One that is
	// just starting dies of these signals and is replaced: Go's runtime lets
	// them through before any of our code runs.
	signal.Ignore(unix.SIGHUP, unix.SIGINT, unix.SIGQUIT, unix.SIGTERM)
	switch t.listen() {
	case killLater:
		t.EndGroup()
	default:
		t.kill()
	}
}

// listen waits for the word, or returns 0 when the pipe has ended without. The
// digits of the server's group come before it.
func (t *Tree) listen() byte {
	var word [1]byte
	for {
		if n, _ := retryRead(keeperPipe, word[:]); n != 1 {
			return 0
		}
		if word[0] < '0' || word[0] > '9' {
			return word[0]
		}
		t.group = t.group*10 + int(word[0]-'0')
	}
}

func (k keeper) guard(group int) {
	_, _ = unix.Write(int(k.line), []byte(strconv.Itoa(group)))
}

func retryRead(fd int, p []byte) (int, error) {
	for {
		n, err := unix.Read(fd, p)
		if err != unix.EINTR {
			return n, err
		}
	}
}
