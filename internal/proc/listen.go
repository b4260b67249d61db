package proc

import (
	"errors"
	"os"
	"strconv"
)

// ListenStage is the argv[0] under which our own binary sets LISTEN_PID to its
// process id and then becomes the program whose path is argv[1], with the rest
// as its argument vector.
const ListenStage = "wireguardrun: set LISTEN_PID"

// RunListenStage does what ListenStage says. It returns only when the program
// can't be executed.
func RunListenStage(argv []string) error {
	if len(argv) < 3 {
		return errors.New("set LISTEN_PID: no program named")
	}
	env := Environ(os.Environ(), []string{"LISTEN_PID=" + strconv.Itoa(os.Getpid())})
	_, err := become(Command{Path: argv[1], Args: argv[2:], Env: env})
	return err
}

// TakesListeners reports whether env passes sockets to this very process, as
// systemd does: its child would refuse them, since the process id is ours.
func TakesListeners(env []string) bool {
	return Getenv(env, "LISTEN_PID") == strconv.Itoa(os.Getpid())
}
