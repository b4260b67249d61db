package proc

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/windows"

	"github.com/wireguardrun/wireguardrun/internal/pipes"
)

func init() {
	roles["describe"] = describe
	roles["exit status"] = func(args []string) int {
		code, err := strconv.ParseUint(args[0], 0, 32)
		if err != nil {
			return 99
		}
		windows.ExitProcess(uint32(code))
		return 98
	}
	roles["tree"] = tree
	roles["become"] = becomeRole
	roles["echo 3 to 4"] = echo3To4
	roles["outer parent"] = outerParent
	roles["print"] = func(args []string) int {
		fmt.Print(strings.Join(args, "|"))
		return 0
	}
}

// launchBounded is launch, but the child and all that it starts are killed
// when the test ends, or its time.
func launchBounded(t *testing.T, c Command, more ...pipes.Handle) *running {
	t.Helper()
	r := launch(t, c, more...)
	left := time.Minute
	if deadline, ok := t.Deadline(); ok {
		left = time.Until(deadline) * 9 / 10
	}
	stop := time.AfterFunc(left, func() { _ = r.kill() })
	t.Cleanup(func() { stop.Stop(); _ = r.kill() })
	return r
}

func newPipe(t *testing.T) (r, w pipes.Handle) {
	t.Helper()
	r, w, err := pipes.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	open.Store(r, true)
	open.Store(w, true)
	t.Cleanup(func() { closeOnce(r); closeOnce(w) })
	return r, w
}

// open has the ends of newPipe that were not closed.
var open sync.Map

// closeOnce closes an end of newPipe, at the end of the test or before it. A
// second close would hit whatever has got the value since.
func closeOnce(h pipes.Handle) {
	if _, yes := open.LoadAndDelete(h); yes {
		_ = pipes.Close(h)
	}
}

// readLine reads byte by byte, so that none of the next line is taken.
func readLine(t *testing.T, from io.Reader) string {
	t.Helper()
	var line []byte
	for b := make([]byte, 1); ; {
		if _, err := from.Read(b); err != nil {
			t.Fatalf("after %q: %v", line, err)
		}
		if b[0] == '\n' {
			return string(line)
		}
		line = append(line, b[0])
	}
}

// rest is all that comes until nobody can write any more.
func rest(t *testing.T, from io.Reader) string {
	t.Helper()
	all, err := io.ReadAll(from)
	if err != nil {
		t.Error(err)
	}
	return string(all)
}

// description is what a child sees.
type description struct {
	Args    []string
	Dir     string
	Env     map[string]string
	Table   []string // of the C runtime: flags and identity of each
	Shared  []string // names of pipes that it has besides
	Handles map[string]string
}

const (
	handlesVariable = "PROC_TEST_HANDLES" // "3=HANDLE,..." told by MoreEnv
	huntVariable    = "PROC_TEST_HUNT"    // an identity that should not be found
)

func describe(args []string) int {
	dir, _ := os.Getwd()
	d := description{Args: args, Dir: dir, Env: map[string]string{}, Handles: map[string]string{}}
	for _, kv := range os.Environ() {
		if name := nameOf(kv); strings.HasPrefix(name, "PROC_TEST_") {
			d.Env[name] = kv[len(name)+1:]
		}
	}
	for _, e := range inheritedTable() {
		id, _ := pipes.Identify(e.handle)
		d.Table = append(d.Table, fmt.Sprintf("%#02x %s", e.flags, id))
	}
	for _, told := range strings.Split(d.Env[handlesVariable], ",") {
		number, value, _ := strings.Cut(told, "=")
		h, _ := strconv.ParseUint(value, 10, 64)
		id, err := pipes.Identify(pipes.Handle(h))
		if err != nil {
			id = pipes.Identity(err.Error())
		}
		d.Handles[number] = string(id)
	}
	for h := pipes.Handle(4); h < 1<<12; h += 4 {
		if hunted := pipes.Identity(d.Env[huntVariable]); hunted.Is(h) {
			d.Shared = append(d.Shared, fmt.Sprint(h))
		}
	}
	if json.NewEncoder(os.Stdout).Encode(d) != nil {
		return 97
	}
	return 0
}

func (r *running) description() (d description) {
	r.t.Helper()
	all, status := r.end()
	if err := json.Unmarshal([]byte(all), &d); err != nil || status != (Status{}) {
		r.t.Fatalf("%v in %q, status %v", err, all, status)
	}
	return d
}

func identity(t *testing.T, h pipes.Handle) string {
	t.Helper()
	id, err := pipes.Identify(h)
	if err != nil {
		t.Fatal(err)
	}
	return string(id)
}

var oddArguments = []string{
	"", " ", "a b", `"`, `a"b`, `\`, `\\`, `a\`, `a b\`, `\"`, `a\\"b c\\`, "ünïcode 漢字 😀", "%PATH%", "&|<>^", "a\nb", "'", "--x=y z",
}

func TestChildGetsWhatItIsGiven(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "a directory ü")
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	c := asRole(t, "describe", oddArguments...)
	c.Dir = dir
	c.Env = Environ(c.Env, []string{"PROC_TEST_ODD=ü=漢字 \t\"%x%", "PROC_TEST_EMPTY="})
	d := launchBounded(t, c).description()
	if !slices.Equal(d.Args, oddArguments) {
		t.Errorf("arguments\n%q, want\n%q", d.Args, oddArguments)
	}
	if !strings.EqualFold(d.Dir, dir) {
		t.Errorf("directory %q, want %q", d.Dir, dir)
	}
	if d.Env["PROC_TEST_ODD"] != "ü=漢字 \t\"%x%" {
		t.Errorf("variable %q", d.Env["PROC_TEST_ODD"])
	}
	if v, ok := d.Env["PROC_TEST_EMPTY"]; !ok || v != "" {
		t.Errorf("empty variable %q, there: %v", v, ok)
	}
}

func TestChildGetsItsHandlesAndNoOthers(t *testing.T) {
	r3, w3 := newPipe(t)
	r5, _ := newPipe(t)
	null, err := pipes.OpenNull()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = pipes.Close(null) })
	stranger, _ := newPipe(t)
	if err := pipes.SetInherited(stranger, true); err != nil {
		t.Fatal(err)
	}
	c := asRole(t, "describe")
	c.Env = Environ(c.Env, []string{huntVariable + "=" + identity(t, stranger)})
	c.MoreEnv = func(inChild func(int) pipes.Handle) []string {
		var told []string
		for n := 3; n < 7; n++ {
			told = append(told, fmt.Sprintf("%d=%d", n, inChild(n)))
		}
		if inChild(99) != pipes.None {
			t.Error("descriptor 99 has a handle")
		}
		return []string{handlesVariable + "=" + strings.Join(told, ",")}
	}
	// 3 and 4 are one object, 6 a hole.
	d := launchBounded(t, c, r3, r3, r5, pipes.None, null, w3).description()
	for number, h := range map[string]pipes.Handle{"3": r3, "4": r3, "5": r5} {
		if d.Handles[number] != identity(t, h) {
			t.Errorf("handle %s is %q, want %q", number, d.Handles[number], identity(t, h))
		}
	}
	if strings.HasPrefix(d.Handles["6"], "pipe:") {
		t.Errorf("the hole is %q", d.Handles["6"])
	}
	if len(d.Shared) > 0 {
		t.Errorf("the child has what it was not given, as handle %v", d.Shared)
	}
	wantTable := []string{
		"0x09 " + identity(t, r3), "0x09 " + identity(t, r3), "0x09 " + identity(t, r5), "0x00 ", "0x41 null:", "0x09 " + identity(t, w3),
	}
	if len(d.Table) != 9 || !slices.Equal(d.Table[3:], wantTable) {
		t.Errorf("table %q, want from 3 on %q", d.Table, wantTable)
	}
}

func TestFullExitStatus(t *testing.T) {
	for _, code := range []uint32{0, 1, 255, 256, 259, 0x12345678, 0xC0000005, 0xC000013A, 0xFFFFFFFF} {
		if _, got := launchBounded(t, asRole(t, "exit status", fmt.Sprint(code))).end(); got != (Status{Code: int(code)}) {
			t.Errorf("status %#x, want %#x", got, code)
		}
	}
}

// tree starts a child in the role "copy" with the same standard handles, says
// so, and waits. With an argument the grandchild leaves the job.
func tree(args []string) int {
	exe, err := os.Executable()
	if err != nil {
		return 90
	}
	cmd := exec.Command(exe)
	cmd.Env = append(os.Environ(), roleVariable+"=copy")
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
	if len(args) > 0 {
		cmd.SysProcAttr = &syscall.SysProcAttr{CreationFlags: windows.CREATE_BREAKAWAY_FROM_JOB}
	}
	if err := cmd.Start(); err != nil {
		fmt.Println(err)
		return 91
	}
	fmt.Println("started", cmd.Process.Pid)
	_ = cmd.Wait()
	return 0
}

// The output ends only when the last of the tree has ended.
func TestKillEndsTheTree(t *testing.T) {
	c := launchBounded(t, asRole(t, "tree"))
	readLine(t, c.out)
	if err := c.Signal(os.Kill); err != nil {
		t.Error(err)
	}
	if got := rest(t, c.out); got != "" {
		t.Errorf("read %q", got)
	}
	if _, got := c.end(); got != (Status{Code: killed}) {
		t.Errorf("status %v", got)
	}
}

func TestBreakawayOutlivesTheTree(t *testing.T) {
	c := launchBounded(t, asRole(t, "tree", "breakaway"))
	var pid uint32
	if _, err := fmt.Sscanf(readLine(t, c.out), "started %d", &pid); err != nil {
		t.Fatal(err)
	}
	daemon, err := windows.OpenProcess(windows.SYNCHRONIZE, false, pid)
	if err != nil {
		t.Fatal(err)
	}
	defer windows.CloseHandle(daemon)
	if err := c.Signal(os.Kill); err != nil {
		t.Error(err)
	}
	if _, err := c.Wait(); err != nil {
		t.Error(err)
	}
	if event, err := windows.WaitForSingleObject(daemon, 0); err != nil || event != uint32(windows.WAIT_TIMEOUT) {
		t.Errorf("the daemon has ended: %#x, %v", event, err)
	}
	_ = c.in.Close() // its standard input ends, and so it does
	if got := rest(t, c.out); got != "" {
		t.Errorf("read %q", got)
	}
}

// outerParent starts a tree and is then killed by the test.
func outerParent([]string) int {
	exe, err := os.Executable()
	if err != nil {
		return 90
	}
	p, err := Start(Command{
		Path: exe, Args: []string{exe}, Terminal: pipes.None,
		Env:   roleEnv("tree"),
		Files: []pipes.Handle{pipes.Standard(0), pipes.Standard(1), pipes.Standard(2)},
	})
	if err != nil {
		fmt.Println(err)
		return 91
	}
	_, _ = p.Wait()
	return 0
}

func TestTreeDiesWithUs(t *testing.T) {
	cmd := viaExec(t, "outer parent")
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = in.Close() }()
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	if line := readLine(t, out); !strings.HasPrefix(line, "started ") {
		t.Fatalf("the tree says %q", line)
	}
	if err := cmd.Process.Kill(); err != nil {
		t.Error(err)
	}
	if got := rest(t, out); got != "" {
		t.Errorf("read %q", got)
	}
	_ = cmd.Wait()
}

func TestSignalsOfOtherSystems(t *testing.T) {
	c := launchBounded(t, asRole(t, "copy"))
	if err := c.Signal(syscall.SIGHUP); err == nil {
		t.Error("a hangup was sent")
	}
	if _, got := c.end(); got != (Status{}) {
		t.Errorf("status %v", got)
	}
}

func TestStartFails(t *testing.T) {
	r, _ := newPipe(t)
	missing := filepath.Join(t.TempDir(), "missing.exe")
	text := filepath.Join(t.TempDir(), "text.exe")
	if err := os.WriteFile(text, []byte("no program"), 0o700); err != nil {
		t.Fatal(err)
	}
	files := []pipes.Handle{r, r, r}
	closed := pipes.Handle(1 << 20)
	for name, test := range map[string]struct {
		c    Command
		want error
	}{
		"missing":     {Command{Path: missing, Files: files}, windows.ERROR_FILE_NOT_FOUND},
		"no program":  {Command{Path: text, Files: files}, windows.ERROR_BAD_EXE_FORMAT},
		"directory":   {Command{Path: self(t), Dir: missing, Files: files}, nil},
		"NUL":         {Command{Path: self(t), Args: []string{"x", "a\x00b"}, Files: files}, nil},
		"NUL in env":  {Command{Path: self(t), Env: []string{"A=b\x00c"}, Files: files}, nil},
		"closed file": {Command{Path: self(t), Files: []pipes.Handle{closed}}, windows.ERROR_INVALID_HANDLE},
		"no files":    {Command{Path: self(t)}, windows.ERROR_INVALID_PARAMETER},
		"line break":  {Command{Path: `C:\x.cmd`, Args: []string{"x", "a\nb"}, Files: files}, errBatchCharacter},
	} {
		if test.c.Args == nil {
			test.c.Args = []string{"x"}
		}
		p, err := Start(test.c)
		var at *os.PathError
		if !errors.As(err, &at) || at.Op != "exec" || at.Path != test.c.Path {
			t.Errorf("%s: %v, want an error of exec with the path", name, err)
		}
		if test.want != nil && !errors.Is(err, test.want) {
			t.Errorf("%s: %v, want %v", name, err, test.want)
		}
		if err == nil {
			_ = p.kill()
		}
	}
}

// A start leaves no handle behind but those of the process and its job, and
// none that others would inherit.
func TestStartLeavesNothingOpen(t *testing.T) {
	r, w := newPipe(t)
	launchBounded(t, asRole(t, "exit", "0")).end()
	count := func() (n int) {
		for h := windows.Handle(4); h < 1<<12; h += 4 {
			if kind, _ := windows.GetFileType(h); kind != windows.FILE_TYPE_UNKNOWN {
				n++
			}
		}
		return n
	}
	before := count()
	c := asRole(t, "exit", "0")
	c.Files = []pipes.Handle{r, w, w}
	for range 5 {
		p, err := Start(c)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := p.Wait(); err != nil {
			t.Error(err)
		}
		c.Path = c.Path + ".missing"
		if _, err := Start(c); err == nil {
			t.Error("a missing program was started")
		}
		c.Path = self(t)
	}
	if extra := count() - before; extra != 0 {
		t.Errorf("%d handles were left open", extra)
	}
}

func TestSlotsAreChecked(t *testing.T) {
	r, _ := newPipe(t)
	inheritable, err := pipes.DuplicateInheritable(r)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = pipes.Close(inheritable) })
	for name, s := range map[string]slots{"not inherited": {r}, "twice": {inheritable, inheritable}} {
		if err := s.check(); !errors.Is(err, windows.ERROR_INVALID_PARAMETER) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if err := (slots{inheritable, pipes.None, pipes.None}).check(); err != nil {
		t.Error(err)
	}
}

func echo3To4([]string) int {
	table := inheritedTable()
	if len(table) < 5 {
		return 80
	}
	buf := make([]byte, 99)
	n, err := pipes.NewConn(table[3].handle).Read(buf)
	if err != nil {
		return 81
	}
	if _, err := pipes.NewConn(table[4].handle).Write(buf[:n]); err != nil {
		return 82
	}
	return 0x12345
}

func becomeRole([]string) int {
	exe, err := os.Executable()
	if err != nil {
		return 90
	}
	status, err := Become(Command{
		Path: exe, Args: []string{exe}, Terminal: pipes.None,
		Env: roleEnv("echo 3 to 4"),
	})
	if err != nil {
		fmt.Println(err)
		return 91
	}
	return status.Code
}

// What becomes another program passes on what it was started with.
func TestBecome(t *testing.T) {
	in, client := newPipe(t)
	wire, out := newPipe(t)
	c := launchBounded(t, asRole(t, "become"), in, out)
	if _, err := pipes.NewConn(client).Write([]byte("over there")); err != nil {
		t.Fatal(err)
	}
	if said, got := c.end(); got != (Status{Code: 0x12345}) {
		t.Errorf("status %#x; it says %q", got, said)
	}
	closeOnce(out)
	if got := rest(t, pipes.NewConn(wire)); got != "over there" {
		t.Errorf("4 carried %q", got)
	}
}

// cChildren are programs with a C runtime, made from testdata/fds.c: prebuilt
// under Wine, where no compiler runs, one for each runtime, else made here with
// the one that the compiler has.
func cChildren(t *testing.T) []string {
	t.Helper()
	if list := os.Getenv("PROC_TEST_C_CHILDREN"); list != "" {
		return filepath.SplitList(list)
	}
	gcc, err := exec.LookPath("gcc")
	if err != nil {
		if os.Getenv("CI") != "" {
			t.Fatalf("in CI every test must run: %v", err)
		}
		t.Skip("needs gcc, or testdata/fds.c compiled and the paths in PROC_TEST_C_CHILDREN")
	}
	path := filepath.Join(t.TempDir(), "fds.exe")
	if out, err := exec.Command(gcc, "-o", path, filepath.Join("testdata", "fds.c")).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return []string{path}
}

func TestCRuntimeGetsDescriptors(t *testing.T) {
	for _, path := range cChildren(t) {
		t.Run(filepath.Base(path), func(t *testing.T) { testCChild(t, path) })
	}
}

func testCChild(t *testing.T, path string) {
	code := uint32(0xC0000005)
	in, client := newPipe(t)
	wire, out := newPipe(t)
	c := launchBounded(t, Command{
		Path: path, Args: []string{path, fmt.Sprint(code)}, Env: os.Environ(), Terminal: pipes.None,
	}, in, out)
	if _, err := pipes.NewConn(client).Write([]byte("one\r\ntwo\x1a\n")); err != nil {
		t.Fatal(err)
	}
	printed, status := c.end()
	if status != (Status{Code: int(code)}) {
		t.Errorf("status %#x", status)
	}
	closeOnce(out)
	if got, want := rest(t, pipes.NewConn(wire)), "one\r\ntwo\x1a\n0:1 1:1 2:1 5:0"; got != want {
		t.Errorf("4 carried %q, want %q", got, want)
	}
	// Whether a standard stream that is in the table is text is decided by
	// the C runtime; the wire is not.
	if strings.ReplaceAll(printed, "\r\n", "\n") != "stray by printf\n" {
		t.Errorf("1 carried %q", printed)
	}
}

func TestEnvironmentBlock(t *testing.T) {
	for want, env := range map[string][]string{
		"\x00\x00":          nil,
		"A=b\x00\x00":       {"A=b"},
		"A=b\x00C=\x00\x00": {"A=b", "C="},
	} {
		block, err := environmentBlock(env)
		var got bytes.Buffer
		for _, u := range block {
			got.WriteByte(byte(u))
		}
		if err != nil || got.String() != want {
			t.Errorf("%q: %q, %v, want %q", env, got.String(), err, want)
		}
	}
}
