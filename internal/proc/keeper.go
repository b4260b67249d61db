package proc

// Keeper is a small second process that ends the tree when this process is
// killed, which it sees by the end of a pipe. It is in a session of its own, so
// that a signal to our group does not reach it, and holds nothing of ours but the
// end of that pipe.
type Keeper struct{ keeper }

// StartKeeper starts the keeper of a run, whose server need not be there yet:
// until Guard, the keeper knows its processes by their mark alone.
func StartKeeper(run string) (*Keeper, error) {
	k, err := startKeeper(run)
	if err != nil {
		return nil, err
	}
	return &Keeper{k}, nil
}

// Guard tells the keeper the server's group. It is to be called once.
func (k *Keeper) Guard(t Tree) { k.guard(t.group) }

// Pid returns the keeper's process id, 0 where there is no such process.
func (k *Keeper) Pid() int { return k.pid() }

// Dismiss ends the keeper: nothing is left for it to do. Its end is told as
// that of any other child.
func (k *Keeper) Dismiss() { k.dismiss() }

// Wait waits for the end of a dismissed keeper. It is only for when the events
// of the server have ended: before that, they tell it.
func (k *Keeper) Wait() { k.wait() }

// KillLater lets the keeper do what EndGroup does, and end.
func (k *Keeper) KillLater() { k.say(killLater) }

// KeeperStage is the argv[0] under which our own binary is the keeper.
const KeeperStage = "wireguardrun: keeper"

// RunKeeper is the keeper's life.
func RunKeeper(argv []string) { runKeeper(argv) }

// killLater is what a keeper can be told. The end of the pipe without it is
// the alarm.
const killLater = 'k'
