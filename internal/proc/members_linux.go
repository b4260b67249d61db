package proc

import (
	"bytes"
	"fmt"
	"iter"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"time"

	"golang.org/x/sys/unix"

	"github.com/wireguardrun/wireguardrun/internal/pipes"
)

// outside lists those of the tree whom a signal to the server's group does not
// reach now: leftGroup, and who has left the group while that was found out.
func (t Tree) outside() []int {
	members, _ := t.members()
	pids := slices.Collect(t.leftGroup())
	return append(pids, t.goneFrom(members, pids)...)
}

// goneFrom returns those who were members of the group, are none any more and
// are not among known.
func (t Tree) goneFrom(members, known []int) (pids []int) {
	for _, pid := range members {
		group, err := unix.Getpgid(pid)
		if err == nil && group != t.group && !slices.Contains(known, pid) && t.marked(pid) {
			pids = append(pids, pid)
		}
	}
	return pids
}

// leftGroup goes through the processes of the tree that are not in the server's
// group: those that carry the run's mark, and those that descend from us, since a
// process that has cleared its environment is still adopted by us. A process in
// our own group is not the server's: a script that then became us has started it
// (exec wireguardrun ... 2> >(logger)). A keeper has no descendants.
func (t Tree) leftGroup() iter.Seq[int] {
	return func(yield func(int) bool) {
		var others []int
		all := map[int]processStatus{}
		pids, _ := processes()
		for _, pid := range pids {
			p, ok := statusOfProcess(pid)
			if !ok {
				continue
			}
			all[pid] = p
			if p.group != t.group {
				others = append(others, pid)
			}
		}
		self, group := os.Getpid(), unix.Getpgrp()
		adopted := func(pid int) bool {
			return all[pid].group != group && descends(pid, self, all) && !isKeeper(pid, all[pid].parent)
		}
		for _, pid := range others {
			if pid != self && (t.marked(pid) || adopted(pid)) && !yield(pid) {
				return
			}
		}
	}
}

func descends(pid, from int, all map[int]processStatus) bool {
	// The list is no snapshot, so it might have a loop.
	for range len(all) {
		if pid = all[pid].parent; pid == from {
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
	members, known := t.members()
	return len(members) > 0 || !known
}

func (t Tree) groupHolds(objects []Object) bool {
	wanted := map[pipes.Identity]bool{}
	for _, o := range objects {
		if o.id != "" {
			wanted[o.id] = true
		}
	}
	members, known := t.members()
	for _, pid := range members {
		dir, entries, err := descriptors(pid)
		if err != nil {
			return true // not for us to see
		}
		for _, e := range entries {
			if id, err := pipes.IdentifyPath(dir + "/" + e.Name()); err == nil && wanted[id] {
				return true
			}
		}
	}
	return !known
}

// descriptors returns the directory that shows what process pid has open. That
// of its first thread is empty once that thread has ended.
func descriptors(pid int) (dir string, entries []os.DirEntry, err error) {
	dir = fmt.Sprintf("/proc/%d/fd", pid)
	if entries, err = os.ReadDir(dir); err != nil || len(entries) > 0 {
		return dir, entries, err
	}
	threads, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/fd", pid))
	for _, dir = range threads {
		if entries, err = os.ReadDir(dir); err != nil || len(entries) > 0 {
			break
		}
	}
	return dir, entries, err
}

// members returns the living members of the server's group. They are not known
// where there is a group and its processes can't be listed.
func (t Tree) members() (pids []int, known bool) {
	// What has ended and was not waited for would still take a signal.
	if t.group <= 1 || unix.Kill(-t.group, 0) == unix.ESRCH {
		return nil, true
	}
	all, known := processes()
	for _, pid := range all {
		if group, err := unix.Getpgid(pid); err != nil || group != t.group {
			continue
		}
		if _, ok := statusOfProcess(pid); ok {
			pids = append(pids, pid)
		}
	}
	return pids, known
}

// marked reports whether process pid was started with the mark of the run.
func (t Tree) marked(pid int) bool {
	env, err := os.ReadFile(fmt.Sprintf("/proc/%d/environ", pid))
	for end := time.Now().Add(time.Second); len(env) == 0 && inExec(pid) && time.Now().Before(end); {
		time.Sleep(time.Millisecond)
		env, err = os.ReadFile(fmt.Sprintf("/proc/%d/environ", pid))
	}
	if err != nil {
		return false
	}
	for kv := range bytes.SplitSeq(env, []byte{0}) {
		if value, ok := bytes.CutPrefix(kv, []byte(EnvRun+"=")); ok {
			return namesRun(string(value), t.run)
		}
	}
	return false
}

// inExec reports whether process pid is replacing its program right now. Until
// that is done, which takes long on a busy machine, it has no environment. A kernel
// thread never has one, and no program either.
func inExec(pid int) bool {
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

// processes lists all that /proc shows. It is of no use where it is missing, or
// that of another PID namespace, whose numbers are not those that kill takes.
func processes() (pids []int, known bool) {
	if self, err := os.Readlink("/proc/self"); err != nil || self != strconv.Itoa(os.Getpid()) {
		return nil, false
	}
	dir, err := os.Open("/proc")
	if err != nil {
		return nil, false
	}
	defer func() { _ = dir.Close() }()
	names, err := dir.Readdirnames(-1)
	for _, name := range names {
		if pid, err := strconv.Atoi(name); err == nil {
			pids = append(pids, pid)
		}
	}
	return pids, err == nil
}

type processStatus struct{ parent, group int }

// statusOfProcess returns false for a process that has ended. One whose first
// thread alone has ended looks like that, but for the number of its threads.
func statusOfProcess(pid int) (p processStatus, ok bool) {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return p, false
	}
	const ( // proc_pid_stat(5), from the state on
		state   = 0
		parent  = 4 - 3
		group   = 5 - 3
		threads = 20 - 3
	)
	fields := bytes.Fields(behindName(stat))
	if len(fields) <= threads {
		return p, false
	}
	p.parent, _ = strconv.Atoi(string(fields[parent]))
	p.group, _ = strconv.Atoi(string(fields[group]))
	ended := string(fields[state]) == "X" || string(fields[state]) == "Z" && string(fields[threads]) == "1"
	return p, !ended
}

// behindName is the part of a stat file that begins with the state: the file is
// "pid (name) state ppid pgrp ...", where the name may hold anything.
func behindName(stat []byte) []byte {
	return stat[bytes.LastIndex(stat, []byte(") "))+1:]
}
