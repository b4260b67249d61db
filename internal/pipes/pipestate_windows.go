package pipes

import (
	"sync"
	"time"
	"unsafe"

	"golang.org/x/sys/windows"
)

// Classes of NtQueryInformationFile.
const (
	fileInternalInformation  = 6
	filePipeLocalInformation = 24
)

// pipeLocal is FILE_PIPE_LOCAL_INFORMATION.
type pipeLocal struct {
	kind, direction               uint32
	maximum, current              uint32 // instances
	inboundQuota, readAvailable   uint32 // bytes
	outboundQuota, quotaAvailable uint32 // bytes
	state, end                    uint32
}

// Values of pipeLocal.
const (
	pipeInbound = 0 // direction: to the server end only
	pipeServer  = 1 // end: of whoever made the pipe

	pipeDisconnected = 1 // the server has put the client off
	pipeClosing      = 4 // the other end is closed; there may be bytes to read
)

// isReader tells which end it is. Of a pipe that goes both ways, whoever made
// it gives the other end away.
func (p pipeLocal) isReader() bool {
	return (p.end == pipeServer) == (p.direction == pipeInbound)
}

func (p pipeLocal) severed() bool { return p.state == pipeClosing || p.state == pipeDisconnected }

// localOf asks for the state of pipe h.
func localOf(h Handle) (p pipeLocal, known bool) {
	err := queryFile(h, filePipeLocalInformation, unsafe.Pointer(&p), unsafe.Sizeof(p))
	return p, err == nil
}

// Severed reports whether nobody has the other end of pipe h, which is
// borrowed, any more, and whether that could be told. It takes nothing out of
// the pipe and puts nothing in. On a synchronous handle the question waits for
// the read or write that a process which shares the handle has under way.
func Severed(h Handle) (severed, known bool) {
	p, known := localOf(h)
	return known && p.severed(), known
}

// Soon returns what ask does, or nothing if that takes longer than limit: a
// question about handle h, which is borrowed, that has to wait shows that h is
// in use. While one such question waits, others about h are not asked.
func Soon[T any](h Handle, limit time.Duration, ask func() T) (answer T) {
	if _, waits := asked.LoadOrStore(h, true); waits {
		return answer
	}
	come := make(chan T, 1)
	go func() {
		answer := ask()
		asked.Delete(h) // before the answer: who has it may ask again at once
		come <- answer
	}()
	select {
	case answer = <-come:
	case <-time.After(limit):
	}
	return answer
}

var asked sync.Map // handles about which a question is under way

// unread is told at the reading end alone: at the other end the system counts a
// read that waits as if its bytes were in the pipe, and not every system counts.
func unread(h Handle) (n int, known bool) {
	const limit = 200 * time.Millisecond
	p := Soon(h, limit, func() (p pipeLocal) { p, _ = localOf(h); return p })
	if p == (pipeLocal{}) || !p.isReader() {
		return 0, false
	}
	return int(p.readAvailable), true
}

// PipeMaker returns the id of the process that made pipe h, which is borrowed,
// or 0 if that is not told. The question waits as that of Severed does.
func PipeMaker(h Handle) int {
	var id uint32
	if !open(h) || windows.GetNamedPipeServerProcessId(windows.Handle(h), &id) != nil {
		return 0
	}
	return int(id)
}

func queryFile(h Handle, class uint32, info unsafe.Pointer, size uintptr) error {
	if !open(h) {
		return windows.ERROR_INVALID_HANDLE
	}
	var status windows.IO_STATUS_BLOCK
	return windows.NtQueryInformationFile(windows.Handle(h), &status, (*byte)(info), uint32(size), class)
}
