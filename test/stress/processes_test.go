//go:build linux

package stress

import (
	"bytes"
	"fmt"
	"os"
	"strconv"
	"strings"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

// markEnv marks every process of one session, from the wrapper down.
const markEnv = "WGR_STRESS_MARK"

// process is what /proc says of one that has not ended.
type process struct {
	pid, parent, group int
	mark               string // of the session, "" for none
	run                string // the wrapper's own name for it
	keeperOf           string // the run that it keeps, if it is a keeper of ours
	name               string
}

// table is one look at /proc, shared by all sessions.
var table struct {
	sync.Mutex
	begun time.Time
	all   []process
}

// processes returns a look at /proc that was begun after since.
func processes(since time.Time) []process {
	table.Lock()
	defer table.Unlock()
	if !table.begun.After(since) {
		table.begun = time.Now()
		table.all = scan()
	}
	return table.all
}

func scan() []process {
	dir, err := os.Open("/proc")
	if err != nil {
		return nil
	}
	defer dir.Close()
	names, _ := dir.Readdirnames(-1)
	var all []process
	for _, name := range names {
		if pid, err := strconv.Atoi(name); err == nil {
			if p, ok := inspect(pid); ok {
				all = append(all, p)
			}
		}
	}
	return all
}

func inspect(pid int) (p process, alive bool) {
	p, state, ok := stat(pid)
	if !ok || state == 'Z' || state == 'X' {
		return p, false
	}
	env, _ := os.ReadFile(fmt.Sprintf("/proc/%d/environ", pid))
	for kv := range bytes.SplitSeq(env, []byte{0}) {
		if v, ok := bytes.CutPrefix(kv, []byte(markEnv+"=")); ok {
			p.mark = string(v)
		}
		if v, ok := bytes.CutPrefix(kv, []byte("WIREGUARDRUN_RUN=")); ok {
			p.run = string(v)
		}
	}
	argv, _ := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid))
	words := strings.Split(string(argv), "\x00")
	if len(words) > 1 && words[0] == "wireguardrun: keeper" {
		if exe, _ := os.Readlink(fmt.Sprintf("/proc/%d/exe", pid)); exe == wireguardrun {
			p.keeperOf = words[1]
		}
	}
	return p, true
}

// stat reads the state of a process, of a zombie too.
func stat(pid int) (p process, state byte, ok bool) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return p, 0, false
	}
	open, end := bytes.IndexByte(text, '('), bytes.LastIndex(text, []byte(") "))
	if open < 0 || end < 0 {
		return p, 0, false
	}
	p.pid, p.name = pid, string(text[open+1:end])
	_, err = fmt.Sscanf(string(text[end+2:]), "%c %d %d", &state, &p.parent, &p.group)
	return p, state, err == nil
}

// alive reports whether a process runs, or is stopped, but has not ended.
func alive(pid int) bool {
	_, state, ok := stat(pid)
	return ok && state != 'Z' && state != 'X'
}

// ignores reports whether process pid ignores sig.
func ignores(pid int, sig unix.Signal) bool {
	status, _ := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	_, rest, _ := strings.Cut(string(status), "SigIgn:")
	var set uint64
	_, err := fmt.Sscanf(rest, "%x", &set)
	return err == nil && set&(1<<(sig-1)) != 0
}

// children returns those of pid, by kind: its server and its keeper.
func children(pid int) (server, keeper int) {
	tasks, _ := os.ReadDir(fmt.Sprintf("/proc/%d/task", pid))
	for _, task := range tasks {
		list, _ := os.ReadFile(fmt.Sprintf("/proc/%d/task/%s/children", pid, task.Name()))
		for _, word := range strings.Fields(string(list)) {
			child, _ := strconv.Atoi(word)
			p, ok := inspect(child)
			switch {
			case !ok:
			case p.keeperOf != "":
				keeper = child
			case p.group == child && p.mark != "" && (server == 0 || child < server):
				server = child // it is older than the orphans that are adopted
			}
		}
	}
	return server, keeper
}

// pidfd names a process for good; its number may become another's.
func pidfd(pid int) int {
	fd, err := unix.PidfdOpen(pid, 0)
	if err != nil {
		return -1
	}
	return fd
}
