package proc

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"syscall"
	"unsafe"

	"golang.org/x/sys/windows"

	"github.com/wireguardrun/wireguardrun/internal/pipes"
)

// process keeps its handles for good: as long as one is open, the id is not
// given to another process, and the job lives as long as we do.
type process struct {
	id     int
	handle windows.Handle
	job    windows.Handle // 0 if the child could not be put into one

	// before has, for each of the child's descriptors, how many handles named
	// the same object when the child was not there yet.
	before map[pipes.Handle]uint32
}

// start gives the child a process group of its own, so that what we send to it
// does not reach us, and exactly the handles of c.Files.
func start(c Command) (process, error) {
	return startWith(c, windows.CREATE_NEW_PROCESS_GROUP, nil)
}

// startWith starts c. inherited is nil, or the descriptors from 3 on that the
// child gets beside everything else that this process lets children inherit.
func startWith(c Command, flags uint32, inherited []entry) (process, error) {
	fail := func(err error) (process, error) {
		return process{}, &os.PathError{Op: "exec", Path: c.Path, Err: err}
	}
	what, err := newTarget(c)
	if err != nil {
		return fail(err)
	}
	if !hasConsole() {
		flags |= windows.CREATE_NO_WINDOW
	}
	flags |= windows.CREATE_UNICODE_ENVIRONMENT | windows.EXTENDED_STARTUPINFO_PRESENT

	// While handles are inheritable, nobody else may start a process.
	syscall.ForkLock.Lock()
	defer syscall.ForkLock.Unlock()
	before := handleCounts(c.Files)
	slots, err := newSlots(c.Files)
	if err != nil {
		return fail(err)
	}
	defer slots.close()
	env, err := environmentBlock(c.environ(slots.handle))
	if err != nil {
		return fail(err)
	}
	job, err := newJob()
	if err != nil {
		return fail(err)
	}
	info, err := newStartup(slots, inherited, job)
	if err != nil {
		_ = windows.CloseHandle(job)
		return fail(err)
	}
	defer info.delete()
	var child windows.ProcessInformation
	create := func(info *startup) error {
		return windows.CreateProcess(what.program, what.line, nil, nil, true, flags, &env[0], what.dir, info.pointer(), &child)
	}
	err = create(info)
	if err == windows.ERROR_ACCESS_DENIED || err == windows.ERROR_NOT_SUPPORTED {
		// The job that we are in ourselves may not allow another within it.
		// A server without a job is better than none. The command line is
		// made anew, since the system may have written into it.
		if bare, errBare := newStartup(slots, inherited, 0); errBare == nil {
			defer bare.delete()
			if what, errBare = newTarget(c); errBare == nil && create(bare) == nil {
				_ = windows.CloseHandle(job)
				job, err = 0, nil
			}
		}
	}
	runtime.KeepAlive(env)
	if err != nil {
		_ = windows.CloseHandle(job)
		return fail(err)
	}
	_ = windows.CloseHandle(child.Thread)
	return process{id: int(child.ProcessId), handle: child.Process, job: job, before: before}, nil
}

// target is what is started, as the system takes it.
type target struct {
	program, line *uint16
	dir           *uint16 // nil is ours
}

func newTarget(c Command) (t target, err error) {
	program, line, err := commandLine(c)
	if err != nil {
		return t, err
	}
	if t.program, err = windows.UTF16PtrFromString(program); err != nil {
		return t, err
	}
	if t.line, err = windows.UTF16PtrFromString(line); err != nil {
		return t, err
	}
	if c.Dir == "" {
		return t, nil
	}
	dir, err := filepath.Abs(c.Dir)
	if err != nil {
		return t, err
	}
	t.dir, err = windows.UTF16PtrFromString(dir)
	return t, err
}

// hasConsole tells whether we are attached to a console, be it one without a
// window. A child then shares it; else it would get one of its own, with a
// window that flashes up.
func hasConsole() bool {
	page, err := windows.GetConsoleCP()
	return err == nil && page != 0
}

// slots are inheritable duplicates of a child's descriptors, one for each, so
// that no handle is there twice: the system refuses such a list.
type slots []pipes.Handle

func newSlots(files []pipes.Handle) (slots, error) {
	s := make(slots, 0, len(files))
	for n, h := range files {
		if h == pipes.None {
			s = append(s, pipes.None)
			continue
		}
		d, err := pipes.DuplicateInheritable(h)
		if err != nil {
			s.close()
			return nil, fmt.Errorf("descriptor %d: %w", n, err)
		}
		s = append(s, d)
	}
	if err := s.check(); err != nil {
		s.close()
		return nil, err
	}
	return s, nil
}

// check guards a rule of the system that not every implementation enforces.
func (s slots) check() error {
	seen := map[pipes.Handle]bool{}
	for n, h := range s {
		if h == pipes.None {
			continue
		}
		inherited, err := pipes.IsInherited(h)
		if err != nil || !inherited || seen[h] {
			return fmt.Errorf("descriptor %d: handle %#x is there twice, or can't be inherited: %w", n, uintptr(h), windows.ERROR_INVALID_PARAMETER)
		}
		seen[h] = true
	}
	return nil
}

func (s slots) handle(n int) pipes.Handle {
	if n >= len(s) {
		return pipes.None
	}
	return s[n]
}

// standard is the value of a standard handle, where 0 is none.
func (s slots) standard(n int) windows.Handle {
	if h := s.handle(n); h != pipes.None {
		return windows.Handle(h)
	}
	return 0
}

func (s slots) close() {
	for _, h := range s {
		if h != pipes.None {
			_ = pipes.Close(h)
		}
	}
}

// startup is all that the system has to have in memory during the start.
type startup struct {
	info       startupInfo
	table      []byte
	list       []windows.Handle
	jobs       []windows.Handle
	attributes *windows.ProcThreadAttributeListContainer
}

// procThreadAttributeJobList is PROC_THREAD_ATTRIBUTE_JOB_LIST: the child is in
// the job before its first instruction.
const procThreadAttributeJobList = 0x0002000d

// newStartup describes a child with the descriptors of s, and with no other
// handle unless inherited is given.
func newStartup(s slots, inherited []entry, job windows.Handle) (*startup, error) {
	st := &startup{}
	entries := make([]entry, 0, len(s))
	for _, h := range s {
		entries = append(entries, newEntry(h))
		if h != pipes.None {
			st.list = append(st.list, windows.Handle(h))
		}
	}
	if inherited == nil && len(st.list) == 0 {
		return nil, fmt.Errorf("no descriptors: %w", windows.ERROR_INVALID_PARAMETER)
	}
	var err error
	if st.table, err = encodeTable(append(entries, inherited...)); err != nil {
		return nil, err
	}
	if st.attributes, err = windows.NewProcThreadAttributeList(2); err != nil {
		return nil, os.NewSyscallError("InitializeProcThreadAttributeList", err)
	}
	if inherited == nil {
		err = st.attributes.Update(windows.PROC_THREAD_ATTRIBUTE_HANDLE_LIST,
			unsafe.Pointer(&st.list[0]), uintptr(len(st.list)*handleSize))
	}
	if err == nil && job != 0 {
		st.jobs = []windows.Handle{job}
		err = st.attributes.Update(procThreadAttributeJobList, unsafe.Pointer(&st.jobs[0]), uintptr(handleSize))
	}
	if err != nil {
		st.delete()
		return nil, os.NewSyscallError("UpdateProcThreadAttribute", err)
	}
	st.info = startupInfo{
		cb:         uint32(unsafe.Sizeof(st.info)),
		flags:      windows.STARTF_USESTDHANDLES,
		tableSize:  uint16(len(st.table)),
		stdInput:   s.standard(0),
		stdOutput:  s.standard(1),
		stdErr:     s.standard(2),
		attributes: st.attributes.List(),
	}
	if len(st.table) > 0 {
		st.info.table = &st.table[0]
	}
	return st, nil
}

func (st *startup) pointer() *windows.StartupInfo {
	return (*windows.StartupInfo)(unsafe.Pointer(&st.info))
}

func (st *startup) delete() { st.attributes.Delete() }

// environmentBlock is env as the system takes it: each with a NUL at its end,
// and one more.
func environmentBlock(env []string) ([]uint16, error) {
	var block []uint16
	for _, kv := range env {
		units, err := windows.UTF16FromString(kv)
		if err != nil {
			return nil, fmt.Errorf("environment variable %s has a NUL: %w", nameOf(kv), err)
		}
		block = append(block, units...)
	}
	if len(block) == 0 {
		block = append(block, 0)
	}
	return append(block, 0), nil
}

func (p process) pid() int { return p.id }

func (p process) wait() (Status, error) {
	if _, err := windows.WaitForSingleObject(p.handle, windows.INFINITE); err != nil {
		return Status{}, os.NewSyscallError("WaitForSingleObject", err)
	}
	var code uint32
	if err := windows.GetExitCodeProcess(p.handle, &code); err != nil {
		return Status{}, os.NewSyscallError("GetExitCodeProcess", err)
	}
	return Status{Code: int(code)}, nil
}

// signal: an interrupt and a polite end are the same event here, Ctrl-Break,
// since new groups ignore Ctrl-C. It needs a console that we share. The end of
// the console itself is told to all that share it.
func (p process) signal(sig os.Signal) error {
	switch sig {
	case os.Interrupt, terminate:
		if err := windows.GenerateConsoleCtrlEvent(windows.CTRL_BREAK_EVENT, uint32(p.id)); err != nil {
			return fmt.Errorf("signal %v as Ctrl-Break to process group %d: %w", sig, p.id, err)
		}
		return nil
	case consoleEnds:
		return nil
	case os.Kill:
		return p.kill()
	default:
		return fmt.Errorf("signal %v: not of this system", sig)
	}
}

// killed is the exit status of what we kill, as that of a shell's kill.
const killed = 1

// kill ends the child and all that it has started.
func (p process) kill() error {
	if p.job != 0 {
		return os.NewSyscallError("TerminateJobObject", windows.TerminateJobObject(p.job, killed))
	}
	return os.NewSyscallError("TerminateProcess", windows.TerminateProcess(p.handle, killed))
}
