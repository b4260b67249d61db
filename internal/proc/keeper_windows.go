package proc

// The job object does what a keeper does: the system ends the tree when the
// last handle of the job is closed, which is when we end.

type keeper struct{}

func startKeeper(string) (keeper, error) { return keeper{}, nil }
func (keeper) pid() int                  { return 0 }
func (keeper) say(byte)                  {}
func (keeper) guard(int)                 {}
func (keeper) dismiss()                  {}
func (keeper) wait()                     {}
func runKeeper([]string)                 {}
