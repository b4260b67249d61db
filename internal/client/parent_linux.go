package client

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/wireguardrun/wireguardrun/internal/pipes"
)

// parentEnd returns a channel that is closed when our parent pid has ended, or
// nil when it can't be watched: it has ended already, or is not visible from
// this PID namespace.
func parentEnd(pid int) <-chan struct{} {
	if pid <= 0 {
		return nil
	}
	fd, err := unix.PidfdOpen(pid, 0)
	if os.Getppid() != pid {
		// It ended before, and the number may be a stranger's by now.
		if err == nil {
			_ = unix.Close(fd)
		}
		return nil
	}
	gone := make(chan struct{})
	go func() {
		if err != nil {
			waitParentChanges(pid) // a kernel before 5.3, or a sandbox
			close(gone)
			return
		}
		defer func() { _ = unix.Close(fd) }()
		if waitForEvent(fd, unix.POLLIN)&unix.POLLIN != 0 {
			close(gone)
		}
	}()
	return gone
}

// lookForParent is the time between two looks where nothing tells of its end.
const lookForParent = 200 * time.Millisecond

func waitParentChanges(pid int) {
	for os.Getppid() == pid {
		time.Sleep(lookForParent)
	}
}

// holdsOtherEnd reports whether process pid holds the other end of in or out,
// and whether that could be found out.
func holdsOtherEnd(pid int, in, out pipes.Handle) (known, holds bool) {
	// The process that made a socket pair is its peer in name for ever.
	for _, h := range []pipes.Handle{in, out} {
		if _, kind := fileType(h); kind == unix.S_IFSOCK {
			cred, err := unix.GetsockoptUcred(int(h), unix.SOL_SOCKET, unix.SO_PEERCRED)
			if err == nil && int(cred.Pid) == pid {
				return true, true
			}
		}
	}
	// Of another PID namespace, it has other processes under the same numbers.
	if self, err := os.Readlink("/proc/self"); err != nil || self != strconv.Itoa(os.Getpid()) {
		return false, false
	}
	dir := fmt.Sprintf("/proc/%d/fd", pid)
	entries, err := os.ReadDir(dir)
	if err != nil {
		return false, false
	}
	ends := map[string]uint32{} // link of the pipe: access mode that the client has
	known = true
	for h, mode := range map[pipes.Handle]uint32{in: unix.O_WRONLY, out: unix.O_RDONLY} {
		switch _, kind := fileType(h); kind {
		case unix.S_IFIFO:
			if link, err := os.Readlink(fmt.Sprintf("/proc/self/fd/%d", h)); err == nil {
				ends[link] = mode
			}
		case unix.S_IFSOCK:
			known = false // by whom the other socket is held is not shown
		}
	}
	for _, e := range entries {
		link, err := os.Readlink(dir + "/" + e.Name())
		if err != nil {
			continue
		}
		mode, ours := ends[link]
		if !ours {
			continue
		}
		if has := accessMode(pid, e.Name()); has == mode || has == unix.O_RDWR {
			return true, true
		}
	}
	return known, false
}

// accessMode returns how process pid may use its descriptor: O_RDONLY,
// O_WRONLY or O_RDWR.
func accessMode(pid int, descriptor string) uint32 {
	info, err := os.ReadFile(fmt.Sprintf("/proc/%d/fdinfo/%s", pid, descriptor))
	if err != nil {
		return unix.O_ACCMODE
	}
	_, rest, _ := strings.Cut(string(info), "flags:")
	var flags uint32
	if _, err := fmt.Sscanf(rest, "%o", &flags); err != nil {
		return unix.O_ACCMODE
	}
	return flags & unix.O_ACCMODE
}
