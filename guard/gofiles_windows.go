package guard

import (
	"os"
	"sync/atomic"
	"syscall"
	"time"
	"unsafe"

	"github.com/wireguardrun/wireguardrun/internal/pipes"
)

// Go code prints to the *os.File that it found in os.Stdout, perhaps long ago,
// and that file holds the handle's value. An os.File is nothing but a pointer
// to its state, so the claim exchanges the states, and every *os.File that
// anybody holds follows.
//
// The state that is put aside is kept reachable: the garbage collector would
// close its handle, which is the wire.

// Should an os.File ever be more than one pointer, this does not compile.
var _ [unsafe.Sizeof(uintptr(0))]byte = [unsafe.Sizeof(os.File{})]byte{}

// filesAtStart are the files that code is most likely to have captured.
var filesAtStart = [2]*os.File{os.Stdin, os.Stdout}

// goFiles are the files of package os that name one standard stream, and
// package syscall's variable of it.
type goFiles struct {
	stream  Stream
	files   []goFile
	handle  *syscall.Handle // nil if it names something else
	current *os.File        // owns the standard handle during the claim
}

type goFile struct {
	at  *os.File
	was os.File
}

// lost holds states whose handle somebody has closed without them: were one
// collected, it would close whatever has that value by then.
var lost []os.File

// findGoFiles returns the files of stream s that name the object of wire, or
// nothing that is open.
func findGoFiles(s Stream, wire handle) *goFiles {
	now := [2]*os.File{os.Stdin, os.Stdout}[s]
	variable := [2]*syscall.Handle{&syscall.Stdin, &syscall.Stdout}[s]
	g := &goFiles{stream: s}
	candidates := []*os.File{filesAtStart[s]}
	if now != candidates[0] {
		candidates = append(candidates, now)
	}
	for _, f := range candidates {
		if h := handleOf(f); h != none && isWireOrClosed(h, wire) {
			g.files = append(g.files, goFile{f, *f})
		}
	}
	if isWireOrClosed(handle(*variable), wire) {
		g.handle = variable
	}
	return g
}

func isWireOrClosed(h, wire handle) bool {
	v := pipes.Compare(h, wire)
	return same(v) || v == pipes.Closed
}

// handleOf returns the handle of f, or none when there is no file or it was
// closed. Unlike f.Fd it doesn't take the handle off the runtime's poller.
func handleOf(f *os.File) handle {
	h := none
	if conn, err := f.SyscallConn(); err == nil {
		_ = conn.Control(func(fd uintptr) { h = handle(fd) })
	}
	return h
}

// divert makes the files print to, and read from, slot, which they own from
// now on.
func (g *goFiles) divert(slot handle) {
	before := g.current
	g.current = os.NewFile(uintptr(slot), g.name())
	for _, f := range g.files {
		exchange(f.at, g.current)
	}
	g.setHandle(slot)
	closeSoon(before)
}

func (g *goFiles) name() string {
	return [2]string{"/dev/stdin", "/dev/stdout"}[g.stream] // as package os has it
}

// restore gives the files their states back. fresh is none, or a new handle
// that is the standard handle now because somebody closed the one before:
// files that had that too get fresh, and own it.
func (g *goFiles) restore(back, fresh handle, onWire func(handle) bool) {
	var anew *os.File
	for _, f := range g.files {
		if fresh == none || onWire(handleOf(&f.was)) {
			exchange(f.at, &f.was)
			continue
		}
		lost = append(lost, f.was)
		if anew == nil {
			anew = os.NewFile(uintptr(fresh), g.name())
		}
		exchange(f.at, anew)
	}
	g.setHandle(back)
	closeSoon(g.current)
	g.current = nil
}

func (g *goFiles) setHandle(h handle) {
	if g.handle != nil {
		atomic.StoreUintptr((*uintptr)(unsafe.Pointer(g.handle)), uintptr(h))
	}
}

// exchange gives at the state of from, in one step for those who use at now.
func exchange(at, from *os.File) {
	state := atomic.LoadPointer((*unsafe.Pointer)(unsafe.Pointer(from)))
	atomic.StorePointer((*unsafe.Pointer)(unsafe.Pointer(at)), state)
}

// closeSoon closes f. If a print into f is under way and stalls, f is closed when
// that print ends, and closeSoon does not wait for it; package os cancels one into
// a pipe.
func closeSoon(f *os.File) {
	if f == nil {
		return
	}
	if h := handleOf(f); pipes.Compare(h, h) == pipes.Closed {
		lost = append(lost, *f)
		return
	}
	closed := make(chan struct{})
	go func() {
		defer close(closed)
		_ = f.Close()
	}()
	select {
	case <-closed:
	case <-time.After(50 * time.Millisecond):
	}
}
