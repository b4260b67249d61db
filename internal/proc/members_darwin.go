package proc

import (
	"bytes"
	"encoding/binary"
	"os"

	"golang.org/x/sys/unix"
)

// processStopped and the like are not in x/sys: SZOMB of sys/proc.h.
const stateZombie = 5

func (t Tree) leftGroup() []int {
	var pids []int
	eachProcess(func(pid, group int) {
		if group != t.group && pid != os.Getpid() && t.marks(pid) {
			pids = append(pids, pid)
		}
	})
	return pids
}

func (t Tree) groupAlive() bool {
	alive := false
	eachProcess(func(_, group int) { alive = alive || group == t.group })
	return alive
}

// groupHolds can't be seen here without private interfaces.
func (t Tree) groupHolds([]Object) bool { return true }

func eachProcess(visit func(pid, group int)) {
	all, err := unix.SysctlKinfoProcSlice("kern.proc.all")
	if err != nil {
		return
	}
	for _, p := range all {
		if p.Proc.P_stat != stateZombie {
			visit(int(p.Proc.P_pid), int(p.Eproc.Pgid))
		}
	}
}

// marks looks for the mark in what KERN_PROCARGS2 tells: the number of
// arguments, the path, the arguments and the environment, each ended by a zero
// byte.
func (t Tree) marks(pid int) bool {
	raw, err := unix.SysctlRaw("kern.procargs2", pid)
	if err != nil || len(raw) < 4 {
		return false
	}
	arguments := int(int32(binary.NativeEndian.Uint32(raw)))
	words := bytes.FieldsFunc(raw[4:], func(r rune) bool { return r == 0 })
	if arguments < 0 || len(words) < 1+arguments {
		return false
	}
	for _, kv := range words[1+arguments:] {
		if value, ok := bytes.CutPrefix(kv, []byte(EnvRun+"=")); ok {
			return isOf(string(value), t.run)
		}
	}
	return false
}
