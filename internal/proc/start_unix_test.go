//go:build unix

package proc

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"os/signal"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/wireguardrun/wireguardrun/internal/pipes"
)

const noTerminal = pipes.None

// inShell returns the command of a line for the shell.
func inShell(script string, args ...string) Command {
	return Command{
		Path: shell, Args: append([]string{"sh", "-c", script, "sh"}, args...),
		Env: os.Environ(), Terminal: noTerminal,
	}
}

func TestScriptWithoutInterpreter(t *testing.T) {
	dir := tempDir(t)
	path := write(t, dir, "script", "echo \"$0: $# arguments, $2\"\nexit 3\n", 0o755)
	c := Command{Path: path, Args: []string{"script", "a", "b c"}, Env: os.Environ(), Terminal: noTerminal}
	want := path + ": 2 arguments, b c\n"
	if got, status := launch(t, c).end(); got != want || status != (Status{Code: 3}) {
		t.Errorf("%q, %+v, want %q", got, status, want)
	}
}

func TestFilesByNumber(t *testing.T) {
	in, toChild, err := pipes.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	fromChild, out, err := pipes.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = pipes.Close(fromChild) }()
	r := launch(t, inShell("cat <&3 >&4"), in, out)
	if _, err := pipes.NewConn(toChild).Write([]byte("there and back")); err != nil {
		t.Fatal(err)
	}
	for _, h := range []pipes.Handle{in, toChild, out} {
		_ = pipes.Close(h)
	}
	if got, err := io.ReadAll(pipes.NewConn(fromChild)); string(got) != "there and back" || err != nil {
		t.Errorf("%q, %v", got, err)
	}
	if got, status := r.end(); got != "" || status != (Status{}) {
		t.Errorf("%q, %+v", got, status)
	}
}

func init() {
	roles["exchange"] = func([]string) int {
		c := inShell("for n in 3 4 5 6; do printf $n >&$n; done")
		c.Files = []pipes.Handle{0, 1, 2, 4, 3}
		p, err := Start(c)
		if err != nil {
			return 1
		}
		status, err := p.Wait()
		if err != nil {
			return 2
		}
		return status.Code
	}
}

// Where descriptors are in each other's way, moving them must not overwrite
// those that the child inherits beside them.
func TestFilesInEachOthersWay(t *testing.T) {
	cmd := viaExec(t, "exchange")
	var readers []*os.File
	for range 4 {
		r, w, err := os.Pipe()
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _, _ = r.Close(), w.Close() }()
		readers = append(readers, r)
		cmd.ExtraFiles = append(cmd.ExtraFiles, w)
	}
	if err := cmd.Run(); err != nil {
		t.Error(err)
	}
	for i, want := range []string{"4", "3", "5", "6"} {
		_ = cmd.ExtraFiles[i].Close()
		if got, err := io.ReadAll(readers[i]); string(got) != want || err != nil {
			t.Errorf("what was our descriptor %d got %q, %v, want %q", i+3, got, err, want)
		}
	}
}

func TestStartErrorsNameThePath(t *testing.T) {
	dir := tempDir(t)
	for path, want := range map[string]error{
		dir + "/missing":                                           fs.ErrNotExist,
		write(t, dir, "data", "data", 0o644):                       fs.ErrPermission,
		write(t, dir, "interpreter", "#!"+dir+"/missing\n", 0o755): fs.ErrNotExist,
	} {
		p, err := Start(Command{Path: path, Args: []string{"x"}, Terminal: noTerminal})
		var at *os.PathError
		if p != nil || !errors.Is(err, want) || !errors.As(err, &at) || at.Path != path {
			t.Errorf("%s: %v, %v, want %v", path, p, err, want)
		}
	}
}

func TestDeathBySignal(t *testing.T) {
	for _, sig := range []syscall.Signal{syscall.SIGTERM, syscall.SIGKILL, syscall.SIGHUP} {
		_, status := launch(t, inShell("kill -$1 $$", strconv.Itoa(int(sig)))).end()
		if status != (Status{Signal: int(sig)}) {
			t.Errorf("%v: %+v", sig, status)
		}
	}
}

func init() {
	// A process that tells of TERM and ends.
	roles["until TERM"] = func([]string) int {
		caught := make(chan os.Signal, 1)
		signal.Notify(caught, unix.SIGTERM)
		fmt.Println("ready", unix.Getpgrp())
		<-caught
		fmt.Println("grandchild got TERM")
		return 0
	}
	// A group leader that starts one of these, and either waits or ends.
	roles["leader"] = func(args []string) int {
		path, err := os.Executable()
		if err != nil {
			return 1
		}
		cmd := exec.Command(path)
		cmd.Env = append(os.Environ(), roleVariable+"=until TERM")
		cmd.Stdout = os.Stdout
		caught := make(chan os.Signal, 1)
		signal.Notify(caught, unix.SIGTERM)
		if cmd.Start() != nil {
			return 1
		}
		if args[0] == "waits" && cmd.Wait() != nil {
			return 1
		}
		return 7
	}
}

// A signal goes to the whole group, whose leader is the child; also when that
// has ended and was waited for, which does not wait for the others.
func TestSignalReachesTheGroup(t *testing.T) {
	for _, leader := range []string{"waits", "ends"} {
		t.Run(leader, func(t *testing.T) {
			r := launch(t, asRole(t, "leader", leader))
			out := bufio.NewReader(r.out)
			ready, err := out.ReadString('\n')
			if want := fmt.Sprintf("ready %d\n", r.Pid()); ready != want {
				t.Fatalf("%q, %v, want %q", ready, err, want)
			}
			if leader == "ends" {
				if status, err := r.Wait(); status != (Status{Code: 7}) || err != nil {
					t.Errorf("%+v, %v", status, err)
				}
			}
			if err := r.Signal(unix.SIGTERM); err != nil {
				t.Error(err)
			}
			if got, err := io.ReadAll(out); string(got) != "grandchild got TERM\n" {
				t.Errorf("%q, %v", got, err)
			}
			if leader == "ends" {
				return
			}
			if status, err := r.Wait(); status != (Status{Code: 7}) || err != nil {
				t.Errorf("%+v, %v", status, err)
			}
			if err := r.Signal(unix.SIGTERM); !errors.Is(err, unix.ESRCH) {
				t.Errorf("a signal to nobody gave %v", err)
			}
		})
	}
}

func TestSignalThatIsNone(t *testing.T) {
	r := launch(t, asRole(t, "copy"))
	if err := r.Signal(noSignal{}); err == nil {
		t.Error("no error")
	}
	r.end()
}

type noSignal struct{}

func (noSignal) Signal()        {}
func (noSignal) String() string { return "none" }

// The stage is our own binary, which is the test binary here.
func TestListenPID(t *testing.T) {
	c := inShell(`echo "$LISTEN_PID $$ $LISTEN_FDS $1"`, "argument")
	c.Env = append(c.Env, "LISTEN_PID="+strconv.Itoa(os.Getpid()), "LISTEN_FDS=2")
	if !TakesListeners(c.Env) {
		t.Error("the sockets are ours and not taken")
	}
	if TakesListeners(append(os.Environ(), "LISTEN_PID=1")) || TakesListeners([]string{"LISTEN_FDS=1"}) {
		t.Error("somebody else's sockets are taken")
	}
	c.ListenPID = true
	r := launch(t, c)
	pid := r.Pid()
	got, status := r.end()
	if want := fmt.Sprintf("%d %d 2 argument\n", pid, pid); got != want || status != (Status{}) {
		t.Errorf("%q, %+v, want %q", got, status, want)
	}

	c.Path = tempDir(t) + "/missing"
	if _, status := launch(t, c).end(); status != (Status{Code: 98}) {
		t.Errorf("a stage that finds no program ended with %+v", status)
	}
	for _, argv := range [][]string{{ListenStage}, {ListenStage, "/bin/sh"}} {
		if err := RunListenStage(argv); err == nil {
			t.Errorf("%q gave no error", argv)
		}
	}
}

func init() {
	roles["become"] = func(args []string) int {
		status, err := Become(Command{Path: args[0], Args: args[1:], Env: []string{"BECAME=1"}})
		fmt.Printf("%+v, %v", status, err)
		return 96
	}
}

func TestBecome(t *testing.T) {
	dir := tempDir(t)
	script := write(t, dir, "script", "echo \"$BECAME $$ $1\"\n", 0o755)
	for _, args := range [][]string{
		{shell, "sh", "-c", `echo "$BECAME $$ $1"`, "sh", "a b"},
		{script, "script", "a b"},
	} {
		r := launch(t, asRole(t, "become", args...))
		want := fmt.Sprintf("1 %d a b\n", r.Pid())
		if got, status := r.end(); got != want || status != (Status{}) {
			t.Errorf("%q: %q, %+v, want %q", args, got, status, want)
		}
	}
	got, status := launch(t, asRole(t, "become", dir+"/missing", "x")).end()
	if status != (Status{Code: 96}) || !strings.Contains(got, "exec "+dir+"/missing: no such file") {
		t.Errorf("%q, %+v", got, status)
	}
}

// openNow lists the descriptors of the shell that runs it, which is a good
// judge of what was passed on: it opens none of its own.
const openNow = `for n in 3 4 5 6 7 8 9; do if (: <&$n) 2>/dev/null; then printf "$n "; fi; done`

func init() {
	// Starts a shell with a pair on 3 and 4, all further descriptors being
	// those that this process has inherited, and then closes these.
	roles["pass on"] = func([]string) int {
		r, w, err := pipes.Pipe()
		if err != nil {
			return 1
		}
		c := inShell(openNow)
		c.Files = []pipes.Handle{0, 1, 2, r, w, pipes.None, pipes.None}
		p, err := Start(c)
		if err != nil {
			fmt.Print(err)
			return 1
		}
		if status, err := p.Wait(); status != (Status{}) || err != nil {
			fmt.Print(status, err)
			return 1
		}
		before := IsInherited(9)
		CloseInherited()
		fmt.Printf("inherited %t, then %t; ours %t; standard %t", before, IsInherited(9),
			pipes.Compare(r, r) != pipes.Closed, IsInherited(0) && IsInherited(1) && IsInherited(2))
		return 0
	}
}

// Inherited descriptors reach the child under their numbers, also those that a
// gap of Files leaves to them; what we open does not.
func TestInheritedDescriptorsPass(t *testing.T) {
	for _, test := range []struct{ redirections, want string }{
		{"9</dev/null", "3 4 9 inherited true, then false; ours true; standard true"},
		{"5</dev/null 9</dev/null", "3 4 5 9 inherited true, then false; ours true; standard true"},
		{"6</dev/null", "3 4 6 inherited false, then false; ours true; standard true"},
		{"7</dev/null 8</dev/null", "3 4 7 8 inherited false, then false; ours true; standard true"},
	} {
		t.Run(test.redirections, func(t *testing.T) {
			cmd := viaExec(t, "pass on")
			cmd.Args = []string{"sh", "-c", `exec "$0" ` + test.redirections, cmd.Path}
			cmd.Path = shell
			if got, err := cmd.Output(); err != nil || string(got) != test.want {
				t.Errorf("%q, %v, want %q", got, err, test.want)
			}
		})
	}
}

// The other end sees the end of file when the child has ended, since we have
// closed our copy.
func TestCloseInheritedLetsGo(t *testing.T) {
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = r.Close() }()
	cmd := viaExec(t, "let go")
	cmd.ExtraFiles = []*os.File{w}
	stdin, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	_ = w.Close()
	if got, err := io.ReadAll(r); string(got) != "by the child" || err != nil {
		t.Errorf("%q, %v", got, err)
	}
	_ = stdin.Close() // only now may it end
	if err := cmd.Wait(); err != nil {
		t.Error(err)
	}
}

func init() {
	roles["let go"] = func([]string) int {
		c := inShell("printf 'by the child' >&3")
		c.Files = []pipes.Handle{0, 1, 2}
		p, err := Start(c)
		if err != nil {
			return 1
		}
		CloseInherited()
		if status, err := p.Wait(); status != (Status{}) || err != nil {
			return 2
		}
		_, _ = io.ReadAll(os.Stdin)
		return 0
	}
}

func TestFreePairBesideInherited(t *testing.T) {
	for _, test := range []struct{ redirections, want string }{
		{"", "3 4"},
		{"3</dev/null", "5 6"},
		{"4</dev/null", "5 6"},
		{"5</dev/null", "3 4"},
		{"3</dev/null 6</dev/null", "7 8"},
	} {
		cmd := viaExec(t, "free pair")
		cmd.Env = withoutNumbers(cmd.Env)
		cmd.Args = []string{"sh", "-c", `exec "$0" ` + test.redirections, cmd.Path}
		cmd.Path = shell
		if got, err := cmd.Output(); err != nil || string(got) != test.want {
			t.Errorf("%q: %q, %v, want %q", test.redirections, got, err, test.want)
		}
	}
}
