package proc

import (
	"bytes"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Of sys/procctl.h.
const (
	procReapGetPids = 5
	reapPidValid    = 0x1
	reapPidZombie   = 0x8 // REAPER_PIDINFO_ZOMBIE
)

type reapPidInfo struct {
	Pid, Subtree int32
	Flags        uint32
	_            [15]uint32
}

type reapPids struct {
	Count uint32
	_     [15]uint32
	Pids  *reapPidInfo
}

// descendants returns the processes below us that are not in group. Only the
// reaper itself is told, so for a keeper there are none.
func descendants(group int) []int {
	infos := make([]reapPidInfo, 1024)
	request := reapPids{Count: uint32(len(infos)), Pids: &infos[0]}
	_, _, errno := unix.Syscall6(unix.SYS_PROCCTL, idTypePid, uintptr(unix.Getpid()), procReapGetPids,
		uintptr(unsafe.Pointer(&request)), 0, 0)
	if errno != 0 {
		return nil
	}
	var pids []int
	for _, info := range infos {
		if info.Flags&reapPidValid == 0 {
			break
		}
		if info.Flags&reapPidZombie != 0 {
			continue
		}
		if g, err := unix.Getpgid(int(info.Pid)); err == nil && g != group && g != unix.Getpgrp() && !isKeeper(int(info.Pid)) {
			pids = append(pids, int(info.Pid))
		}
	}
	return pids
}

// isKeeper reports whether process pid is our keeper, which is below us too.
func isKeeper(pid int) bool {
	line, err := unix.SysctlRaw("kern.proc.args", pid)
	return err == nil && bytes.HasPrefix(line, []byte(KeeperStage+"\x00"))
}
