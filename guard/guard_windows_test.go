package guard

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"unsafe"

	"golang.org/x/sys/windows"

	"github.com/wireguardrun/wireguardrun/internal/pipes"
)

func init() {
	add := func(text string, print func(string) error) {
		strays = append(strays, struct {
			text  string
			print func(string) error
		}{text, print})
	}
	add("stray by WriteFile", func(s string) error {
		h, err := windows.GetStdHandle(windows.STD_OUTPUT_HANDLE)
		if err != nil {
			return err
		}
		var n uint32
		return windows.WriteFile(h, []byte(s+"\n"), &n, nil)
	})
	add("stray by syscall.Stdout", func(s string) error {
		_, err := syscall.Write(syscall.Stdout, []byte(s+"\n"))
		return err
	})
	add("stray by a subprocess of native code", func(string) error {
		var failure string
		if err := nativeSubprocess("print natively", &failure); err != nil || failure != "" {
			return fmt.Errorf("%w %s", err, failure)
		}
		return nil
	})
	roles["print natively"] = func([]byte) any {
		_, err := fmt.Println("stray by a subprocess of native code")
		return errorText(err)
	}
}

// nativeSubprocess is subprocess as native code does it: the child inherits
// whatever can be inherited, and asks for its standard handles.
func nativeSubprocess(role string, v any) error {
	self, err := os.Executable()
	if err != nil {
		return err
	}
	report := filepath.Join(os.TempDir(), fmt.Sprintf("guard-%d-report", os.Getpid()))
	defer func() { _ = os.Remove(report) }()
	line, err := windows.UTF16PtrFromString(syscall.EscapeArg(self))
	if err != nil {
		return err
	}
	_, _ = os.Setenv(roleVariable, role), os.Setenv(reportVariable, report)
	defer func() { _, _ = os.Unsetenv(roleVariable), os.Unsetenv(reportVariable) }()
	start := &windows.StartupInfo{}
	start.Cb = uint32(unsafe.Sizeof(*start))
	var child windows.ProcessInformation
	syscall.ForkLock.Lock()
	err = windows.CreateProcess(nil, line, nil, nil, true, 0, nil, nil, start, &child)
	syscall.ForkLock.Unlock()
	if err != nil {
		return os.NewSyscallError("CreateProcess", err)
	}
	defer func() { _, _ = windows.CloseHandle(child.Process), windows.CloseHandle(child.Thread) }()
	if _, err := windows.WaitForSingleObject(child.Process, windows.INFINITE); err != nil {
		return err
	}
	out, err := os.ReadFile(report)
	if err != nil {
		return err
	}
	return json.Unmarshal(out, v)
}

// kind is a sort of object that the standard streams can be.
type kind struct {
	name string
	// open returns what the child gets, a way to send to it and to end
	// that, and one to read what it wrote, after its end.
	open func(t *testing.T) (stdin, stdout *os.File, send func(string), received func() string)
}

var pipeCount atomic.Int32

// newNamedPipe returns the two ends of a duplex pipe, as clients make them
// that want to wait for more than one thing at a time.
func newNamedPipe(t *testing.T, mode, flags uint32) (client, server *os.File) {
	t.Helper()
	path, err := windows.UTF16PtrFromString(fmt.Sprintf(`\\.\pipe\wireguardrun-guard-%d-%d`, os.Getpid(), pipeCount.Add(1)))
	if err != nil {
		t.Fatal(err)
	}
	c, err := windows.CreateNamedPipe(path, windows.PIPE_ACCESS_DUPLEX|windows.FILE_FLAG_OVERLAPPED, mode, 1, 4096, 4096, 0, nil)
	if err != nil {
		t.Fatal(err)
	}
	s, err := windows.CreateFile(path, windows.GENERIC_READ|windows.GENERIC_WRITE, 0, nil, windows.OPEN_EXISTING, flags, 0)
	if err != nil {
		t.Fatal(err)
	}
	client, server = os.NewFile(uintptr(c), "client"), os.NewFile(uintptr(s), "server")
	t.Cleanup(func() { _ = client.Close(); _ = server.Close() })
	return client, server
}

func kinds() []kind {
	named := func(name string, mode, flags uint32) kind {
		return kind{name, func(t *testing.T) (*os.File, *os.File, func(string), func() string) {
			client, server := newNamedPipe(t, mode, flags)
			return server, server, sendTo(t, client), readAfter(t, client, server)
		}}
	}
	return []kind{
		{"pipe", func(t *testing.T) (*os.File, *os.File, func(string), func() string) {
			stdin, client := newPipe(t)
			wire, stdout := newPipe(t)
			return stdin, stdout, sendTo(t, client), readAfter(t, wire, stdout)
		}},
		named("duplex pipe", 0, 0),
		named("overlapped pipe", 0, windows.FILE_FLAG_OVERLAPPED),
		named("message pipe", windows.PIPE_TYPE_MESSAGE, windows.FILE_FLAG_OVERLAPPED),
		{"regular file", func(t *testing.T) (*os.File, *os.File, func(string), func() string) {
			in, out := filepath.Join(t.TempDir(), "in"), filepath.Join(t.TempDir(), "out")
			client, stdin := openFile(t, in, os.O_WRONLY|os.O_CREATE), openFile(t, in, os.O_RDONLY)
			stdout := openFile(t, out, os.O_WRONLY|os.O_CREATE)
			return stdin, stdout, sendTo(t, client), readAfter(t, openFile(t, out, os.O_RDONLY), stdout)
		}},
		{"null device", func(t *testing.T) (*os.File, *os.File, func(string), func() string) {
			null := openFile(t, os.DevNull, os.O_RDWR)
			return null, null, func(string) {}, func() string { return "" }
		}},
	}
}

func sendTo(t *testing.T, client *os.File) func(string) {
	return func(text string) {
		if _, err := io.WriteString(client, text); err != nil {
			t.Error(err)
		}
	}
}

// readAfter reads from client when the child has ended, and server, its end,
// with it.
func readAfter(t *testing.T, client, server *os.File) func() string {
	return func() string {
		_ = server.Close()
		all, err := io.ReadAll(client)
		if err != nil {
			t.Error(err)
		}
		return string(all)
	}
}

func openFile(t *testing.T, path string, flags int) *os.File {
	t.Helper()
	f, err := os.OpenFile(path, flags, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = f.Close() })
	return f
}

func init() {
	addRole("serve", func(t *childTest, _ []byte) {
		w, err := Claim()
		t.must(err)
		if (w.State() != Status{Diverted, Diverted}) || w.Err() != nil {
			t.errorf("state %v, errors %v", w.State(), w.Err())
		}
		echo(w)
		fmt.Println("stray")
		t.must(w.Release())
		fmt.Println("bye")
	})
}

func TestEveryKindOfStream(t *testing.T) {
	t.Parallel()
	for _, k := range kinds() {
		t.Run(k.name, func(t *testing.T) {
			c := newChild(t, "serve", nil)
			stdin, stdout, send, received := k.open(t)
			var stderr bytes.Buffer
			c.cmd.Stdin, c.cmd.Stdout, c.cmd.Stderr = stdin, stdout, &stderr
			send("one\n")
			c.start()
			c.ended()
			want := "echo one\nbye\n"
			if k.name == "null device" {
				want = ""
			}
			if got := received(); got != want {
				t.Errorf("the wire carried %q, want %q", got, want)
			}
			if got, want := stderr.String(), "stray\n"; got != want {
				t.Errorf("standard error got %q, want %q", got, want)
			}
		})
	}
}

func init() {
	addRole("nothing there", func(t *childTest, _ []byte) {
		stale, err := pipes.OpenNull()
		t.must(err)
		t.must(pipes.Close(stale))
		for _, value := range []handle{0, none, stale} {
			for n := range 3 {
				t.must(pipes.SetStandard(n, value))
			}
			w, err := Claim()
			t.must(err)
			if (w.State() != Status{Diverted, Diverted}) || w.Err() != nil {
				t.errorf("with %#x: state %v, errors %v", value, w.State(), w.Err())
			}
			if n, err := w.Read(make([]byte, 9)); n != 0 || err != io.EOF {
				t.errorf("with %#x: Read gave %d, %v", value, n, err)
			}
			if n, err := io.WriteString(w, "nobody"); n != 6 || err != nil {
				t.errorf("with %#x: Write gave %d, %v", value, n, err)
			}
			t.must(w.Release())
			for n := range 3 {
				if pipes.Standard(n) == none || !pipes.NeverBlocks(pipes.Standard(n)) {
					t.errorf("with %#x: afterwards %d is not the null device", value, n)
				}
				t.closed-- // it stays open
			}
		}
	})
}

// Standard handles that are missing count as the null device.
func TestMissingStandardHandles(t *testing.T) {
	t.Parallel()
	c := newChild(t, "nothing there", nil)
	c.start()
	c.ended()
}

const wireVariable = "WGR_WIRE"

func init() {
	roles["find the wire"] = func([]byte) any {
		ids := strings.Fields(os.Getenv(wireVariable))
		found := 0
		for h := handle(4); h < highestHandle; h += 4 {
			for _, id := range ids {
				if pipes.Identity(id).Is(h) {
					found++
				}
			}
		}
		return found
	}
	addRole("starts children", func(t *childTest, _ []byte) {
		var ids []string
		for n := range 2 {
			id, err := pipes.Identify(pipes.Standard(n))
			t.must(err)
			ids = append(ids, string(id))
		}
		t.must(os.Setenv(wireVariable, strings.Join(ids, " ")))
		native := func(when string, want int) {
			found := -1
			t.must(nativeSubprocess("find the wire", &found))
			if found != want {
				t.errorf("%s: a child that inherits everything has %d handles of the wire, want %d", when, found, want)
			}
		}
		native("before", 2)
		w, err := Claim()
		t.must(err)
		native("during the claim", 0)
		found := -1
		t.must(subprocess("find the wire", &found))
		if found != 0 {
			t.errorf("a child started by os/exec has %d handles of the wire", found)
		}
		t.must(w.Release())
		native("afterwards", 2)
	})
}

func TestChildrenInheritNothingOfTheWire(t *testing.T) {
	t.Parallel()
	s := newSession(t, "starts children", nil)
	s.start()
	if wire := s.end(); wire != "" {
		t.Errorf("the wire carried %q", wire)
	}
}

// collect lets the garbage collector close what nobody holds.
func collect() {
	for range 3 {
		runtime.GC()
		collected := make(chan struct{})
		runtime.AddCleanup(new([16]byte), func(c chan struct{}) { close(c) }, collected)
		runtime.GC()
		<-collected
	}
}

func init() {
	addRole("collected", func(t *childTest, _ []byte) {
		collect()
		w, err := Claim()
		t.must(err)
		collect()
		_, err = io.WriteString(w, "wire\n")
		t.must(err)
		fmt.Println("stray")
		t.must(w.Release())
		collect()
		fmt.Println("print")
		fmt.Fprintln(captured, "captured")
		all, err := io.ReadAll(os.Stdin)
		t.must(err)
		fmt.Printf("read %s\n", all)
	})
}

// What the claim puts aside has finalizers that would close the wire.
func TestGarbageCollection(t *testing.T) {
	t.Parallel()
	s := newSession(t, "collected", nil)
	s.start()
	s.send("input")
	if got, want := s.end(), "wire\nprint\ncaptured\nread input\n"; got != want {
		t.Errorf("the wire carried %q, want %q", got, want)
	}
}

func init() {
	addRole("original closed", func(t *childTest, _ []byte) {
		originals := [2]handle{pipes.Standard(0), pipes.Standard(1)}
		w, err := Claim()
		t.must(err)
		for _, h := range originals {
			t.must(pipes.Close(h))
		}
		fmt.Println("stray")
		_, err = io.WriteString(w, "wire\n")
		t.must(err)
		t.must(w.Release())
		// Strangers get the values that the originals had.
		var strangers []handle
		for range 1000 {
			h, err := pipes.OpenNull()
			t.must(err)
			strangers = append(strangers, h)
			if pipes.Compare(originals[0], h) != pipes.Closed && pipes.Compare(originals[1], h) != pipes.Closed {
				break // both are taken
			}
		}
		collect()
		for _, h := range strangers {
			if err := pipes.Close(h); err != nil {
				t.errorf("a stranger's handle %#x was closed: %v", h, err)
			}
		}
		fmt.Println("print")
		fmt.Fprintln(captured, "captured")
		all, err := io.ReadAll(os.Stdin)
		t.must(err)
		fmt.Printf("read %s\n", all)
	})
}

// Somebody closes the handles that the claim is to put back.
func TestOriginalHandlesClosed(t *testing.T) {
	t.Parallel()
	s := newSession(t, "original closed", nil)
	s.start()
	s.send("input")
	if got, want := s.end(), "wire\nprint\ncaptured\nread input\n"; got != want {
		t.Errorf("the wire carried %q, want %q", got, want)
	}
	if got := s.stderr.String(); got != "stray\n" {
		t.Errorf("standard error got %q", got)
	}
}

func init() {
	addRole("stalled print", func(t *childTest, _ []byte) {
		w, err := Claim()
		t.must(err)
		printed := make(chan error)
		go func() {
			_, err := captured.Write(make([]byte, full))
			printed <- err
		}()
		untilBlocked("os.(*File).Write")
		t.must(w.Release())
		fmt.Println("bye")
		<-printed
	})
}

// Release does not wait for a print that nobody reads.
func TestReleaseWithAStalledPrint(t *testing.T) {
	t.Parallel()
	c := newChild(t, "stalled print", nil)
	unread, stderr := newPipe(t)
	wire, stdout := newPipe(t)
	c.cmd.Stdout, c.cmd.Stderr = stdout, stderr
	c.start()
	_, _ = stdout.Close(), stderr.Close()
	line, err := bufio.NewReader(wire).ReadString('\n')
	if line != "bye\n" || err != nil {
		t.Errorf("the wire carried %q, %v", line, err)
	}
	if err := unread.Close(); err != nil {
		t.Error(err)
	}
	c.ended()
}

// failing lets calls fail by their number, counted from 0.
type failing struct {
	calls int
	fail  map[int]how
	lost  bool // the handle that children inherited can't be inherited any more
}

func (f *failing) next() how {
	how := f.fail[f.calls]
	f.calls++
	return how
}

func (f *failing) do(act func() error) error {
	switch f.next() {
	case untouched:
		return errInjected
	case done:
		return errors.Join(act(), errInjected)
	default:
		return act()
	}
}

// wrap returns real with its failures. What only looks is not made to fail:
// there is no other way to see where things are.
func (f *failing) wrap(real standardCalls) standardCalls {
	c := real
	c.set = func(n int, h handle) error { return f.do(func() error { return real.set(n, h) }) }
	c.setInherited = func(h handle, on bool) error {
		err := f.do(func() error { return real.setInherited(h, on) })
		now, _ := real.inherited(h)
		f.lost = on && !now
		return err
	}
	c.inheritable = func(h handle) (handle, error) {
		if f.next() != "" {
			return none, errInjected
		}
		return real.inheritable(h)
	}
	c.inherited = func(h handle) (bool, error) {
		if f.next() != "" {
			return false, errInjected
		}
		return real.inherited(h)
	}
	return c
}

// lookAt checks what has to hold at every moment: the standard handle is on
// the wire or on the diversion, Go's files are where it is, and children
// inherit the wire's handle only in the first case.
func (f *failing) lookAt(t *childTest, when string, s Stream, wire, diverted, original handle) {
	when = fmt.Sprintf("%v: %s", f.fail, when)
	at := pipes.Standard(int(s))
	onWire := pipes.Compare(at, wire) == pipes.Same
	if !onWire && pipes.Compare(at, diverted) != pipes.Same {
		t.errorf("%s: %s is neither on the wire nor on the diversion", when, s)
	}
	if pipes.Compare(handleOf(filesAtStart[s]), at) != pipes.Same {
		t.errorf("%s: %s: Go's file is elsewhere", when, s)
	}
	inherited, err := pipes.IsInherited(original)
	if err != nil || inherited != (onWire && !f.lost) {
		t.errorf("%s: %s is on the wire: %v, and inherited: %v, %v", when, s, onWire, inherited, err)
	}
}

func init() {
	addRole("failing calls", func(t *childTest, _ []byte) {
		p := newProbes(t)
		null, err := pipes.OpenNull()
		t.must(err)
		lives := 0
		live := func(s Stream, fail map[int]how) int {
			lives++
			f := &failing{fail: fail}
			original := pipes.Standard(int(s))
			before := openHandles()
			st := &standardStreams{calls: f.wrap(realCalls())}
			look := func(when string) { f.lookAt(t, when, s, p[s], null, original) }
			err := st.divert(s, null)
			look("after divert")
			if err == nil && !p.moved(s) {
				t.errorf("%v: divert did nothing", fail)
			}
			_ = st.restore(s, p[s])
			look("after restore")
			calls := f.calls
			st.calls = realCalls()
			t.must(st.restore(s, p[s]))
			t.must(st.restore(s, p[s]))
			look("after another restore")
			if p.moved(s) || pipes.Standard(int(s)) != original {
				t.errorf("%v: restore left the standard handle elsewhere", fail)
			}
			t.must(pipes.SetInherited(original, true))
			if extra := openHandles() - before; extra != 0 {
				t.errorf("%v: %d handles were left open", fail, extra)
			}
			return calls
		}
		for _, s := range []Stream{In, Out} {
			for first := range live(s, nil) {
				for _, how1 := range []how{untouched, done} {
					calls := live(s, map[int]how{first: how1})
					for second := first + 1; second < calls; second++ {
						for _, how2 := range []how{untouched, done} {
							live(s, map[int]how{first: how1, second: how2})
						}
					}
				}
			}
		}
		fmt.Fprintln(os.Stderr, lives)
		p.close()
		t.must(pipes.Close(null))
	})
}

// Each call of a divert and a restore fails, and then each later one as well.
func TestFailingCalls(t *testing.T) {
	t.Parallel()
	s := newSession(t, "failing calls", nil)
	s.start()
	if wire := s.end(); wire != "" {
		t.Errorf("the wire carried %q", wire)
	}
	t.Logf("%s lives", strings.TrimSpace(s.stderr.String()))
}

func init() {
	addRole("restore alone", func(t *childTest, _ []byte) {
		p := newProbes(t)
		st := &standardStreams{calls: realCalls()}
		original := pipes.Standard(int(Out))
		t.must(st.restore(Out, p[Out]))
		if pipes.Standard(int(Out)) != original {
			t.errorf("restore without divert moved the standard handle")
		}
		// A hole is filled again, for Go's files too.
		t.must(pipes.Close(original))
		t.must(st.restore(Out, p[Out]))
		collect()
		if p.moved(Out) {
			t.errorf("restore left a hole")
		}
		fmt.Println("print")
		p.close()
	})
}

func TestRestoreWithoutDivert(t *testing.T) {
	t.Parallel()
	s := newSession(t, "restore alone", nil)
	s.start()
	if got, want := s.end(), "print\n"; got != want {
		t.Errorf("the wire carried %q, want %q", got, want)
	}
}

// os.File is exchanged as one pointer; a print while that happens goes to one
// of the two and is whole.
func TestExchange(t *testing.T) {
	dir := t.TempDir()
	a := openFile(t, filepath.Join(dir, "a"), os.O_CREATE|os.O_WRONLY|os.O_APPEND)
	b := openFile(t, filepath.Join(dir, "b"), os.O_CREATE|os.O_WRONLY|os.O_APPEND)
	was := *a
	exchange(a, b)
	if _, err := io.WriteString(a, "by a"); err != nil {
		t.Error(err)
	}
	exchange(a, &was)
	if _, err := io.WriteString(a, "to a"); err != nil {
		t.Error(err)
	}
	for name, want := range map[string]string{"a": "to a", "b": "by a"} {
		if got, err := os.ReadFile(filepath.Join(dir, name)); string(got) != want || err != nil {
			t.Errorf("%s holds %q, %v, want %q", name, got, err, want)
		}
	}
}
