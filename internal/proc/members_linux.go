package proc

import (
	"bytes"
	"fmt"
	"os"
	"slices"
	"strconv"
	"time"

	"golang.org/x/sys/unix"

	"github.com/wireguardrun/wireguardrun/internal/pipes"
)

// leftGroup returns the processes that are not in the server's group and carry
// the run's mark, or descend from us: who has thrown its variables away is
// still adopted by us. A keeper has no descendants.
func (t Tree) leftGroup() []int {
	var others []int
	parents := map[int]int{}
	eachProcess(func(pid, parent, group int) {
		parents[pid] = parent
		if group != t.group {
			others = append(others, pid)
		}
	})
	self := os.Getpid()
	return slices.DeleteFunc(others, func(pid int) bool {
		return pid == self || !t.marks(pid) && (!descends(pid, self, parents) || isKeeper(pid, parents[pid]))
	})
}

func descends(pid, from int, parents map[int]int) bool {
	// The list is no snapshot, so it might have a loop.
	for range len(parents) {
		if pid = parents[pid]; pid == from {
			return true
		}
	}
	return false
}

// isKeeper reports whether process pid is a keeper, ours or that of a run
// below us, or is about to become one.
func isKeeper(pid, parent int) bool {
	line, err := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid))
	if err != nil {
		return false
	}
	if bytes.HasPrefix(line, []byte(KeeperStage+"\x00")) {
		return true
	}
	parents, err := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", parent))
	return err == nil && parent == os.Getpid() && bytes.Equal(line, parents)
}

func (t Tree) groupAlive() bool {
	if t.group <= 1 || unix.Kill(-t.group, 0) == unix.ESRCH {
		return false
	}
	// What has ended and was not waited for would still take a signal.
	alive := false
	eachProcess(func(_, _, group int) { alive = alive || group == t.group })
	return alive
}

func (t Tree) groupHolds(objects []Object) bool {
	wanted := map[pipes.Identity]bool{}
	for _, o := range objects {
		if o.id != "" {
			wanted[o.id] = true
		}
	}
	holds := false
	eachProcess(func(pid, _, group int) {
		if group != t.group || holds {
			return
		}
		dir := fmt.Sprintf("/proc/%d/fd", pid)
		entries, err := os.ReadDir(dir)
		if err != nil {
			holds = true // not for us to see
			return
		}
		for _, e := range entries {
			if id, err := pipes.IdentifyPath(dir + "/" + e.Name()); err == nil && wanted[id] {
				holds = true
				return
			}
		}
	})
	return holds
}

// marks reports whether process pid was started with the mark of the run.
func (t Tree) marks(pid int) bool {
	env, err := os.ReadFile(fmt.Sprintf("/proc/%d/environ", pid))
	for end := time.Now().Add(time.Second); len(env) == 0 && executes(pid) && time.Now().Before(end); {
		time.Sleep(time.Millisecond)
		env, err = os.ReadFile(fmt.Sprintf("/proc/%d/environ", pid))
	}
	if err != nil {
		return false
	}
	for kv := range bytes.SplitSeq(env, []byte{0}) {
		if value, ok := bytes.CutPrefix(kv, []byte(EnvRun+"=")); ok {
			return isOf(string(value), t.run)
		}
	}
	return false
}

// executes reports whether process pid is just replacing its program: for that
// time, which is long when others have the processors, it has no environment.
// A kernel thread never has one, nor a program.
func executes(pid int) bool {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return false
	}
	const envEnd = 51 - 3 // proc_pid_stat(5), from the state on
	fields := bytes.Fields(behindName(stat))
	if len(fields) <= envEnd || string(fields[envEnd]) != "0" {
		return false
	}
	_, err = os.Readlink(fmt.Sprintf("/proc/%d/exe", pid))
	return err == nil
}

// eachProcess visits all processes that have not ended, with their parents and groups.
func eachProcess(visit func(pid, parent, group int)) {
	dir, err := os.Open("/proc")
	if err != nil {
		return
	}
	defer func() { _ = dir.Close() }()
	names, err := dir.Readdirnames(-1)
	if err != nil {
		return
	}
	for _, name := range names {
		pid, err := strconv.Atoi(name)
		if err != nil {
			continue
		}
		stat, err := os.ReadFile("/proc/" + name + "/stat")
		if err != nil {
			continue
		}
		var state byte
		var parent, group int
		if _, err := fmt.Sscanf(string(behindName(stat)), " %c %d %d", &state, &parent, &group); err != nil || state == 'Z' || state == 'X' {
			continue
		}
		visit(pid, parent, group)
	}
}

// behindName is the part of a stat file that begins with the state: the file is
// "pid (name) state ppid pgrp ...", where the name may hold anything.
func behindName(stat []byte) []byte {
	return stat[bytes.LastIndex(stat, []byte(") "))+1:]
}
