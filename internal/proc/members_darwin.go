package proc

import (
	"bytes"
	"iter"
	"os"
	"slices"

	"golang.org/x/sys/unix"
)

// stateZombie is SZOMB of sys/proc.h, which is not in x/sys.
const stateZombie = 5

func (t Tree) outside() []int { return slices.Collect(t.leftGroup()) }

func (t Tree) leftGroup() iter.Seq[int] {
	return func(yield func(int) bool) {
		all, _ := processes()
		for _, p := range all {
			pid := int(p.Proc.P_pid)
			if int(p.Eproc.Pgid) != t.group && pid != os.Getpid() && t.marked(pid) && !yield(pid) {
				return
			}
		}
	}
}

func (t Tree) groupAlive() bool {
	if t.group <= 1 || unix.Kill(-t.group, 0) == unix.ESRCH {
		return false
	}
	all, known := processes()
	return !known || slices.ContainsFunc(all, func(p unix.KinfoProc) bool { return int(p.Eproc.Pgid) == t.group })
}

// groupHolds can't be seen here without private interfaces.
func (t Tree) groupHolds([]Object) bool { return true }

// processes lists all that have not ended.
func processes() (all []unix.KinfoProc, known bool) {
	all, err := unix.SysctlKinfoProcSlice("kern.proc.all")
	return slices.DeleteFunc(all, func(p unix.KinfoProc) bool { return p.Proc.P_stat == stateZombie }), err == nil
}

// marked looks for the mark in what KERN_PROCARGS2 tells: the number of
// arguments, the path, the arguments and the environment, each ended by a zero
// byte. Nobody else has an argument that names the run.
func (t Tree) marked(pid int) bool {
	raw, err := unix.SysctlRaw("kern.procargs2", pid)
	if err != nil {
		return false
	}
	for kv := range bytes.SplitSeq(raw, []byte{0}) {
		if value, ok := bytes.CutPrefix(kv, []byte(EnvRun+"=")); ok && namesRun(string(value), t.run) {
			return true
		}
	}
	return false
}
