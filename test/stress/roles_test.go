//go:build linux

package stress

import (
	"bufio"
	"encoding/binary"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// roles are what the test binary can be in place of a test.
var roles map[string]func() int

func init() {
	roles = map[string]func() int{
		"client": client, "server": server,
		"misbehaving": misbehaving, "soak": soakServer, "noise": soakNoise,
	}
}

// Numbers of the client's descriptors.
const (
	clientControl = iota
	clientReport
	_ // standard error
	serverIn
	clientIn
	clientOut
	serverOut
	clientErr
	serverErr
	clientFiles
)

// client starts its arguments as a server, as a client of the wire does, and
// checks the frames that it gets. On standard input it gets orders, on
// standard output it tells of the wrapper's pid and, at the end of the wire,
// of the frames. It ends with the wire.
func client() int {
	for fd := serverIn; fd < clientFiles; fd++ {
		unix.CloseOnExec(fd)
	}
	env := os.Environ()
	attr := &syscall.ProcAttr{
		Env:   append(env, markEnv+"="+os.Getenv("WGR_STRESS_SESSION")),
		Files: []uintptr{serverIn, serverOut, serverErr},
		Sys:   &syscall.SysProcAttr{Setpgid: os.Getenv("WGR_STRESS_OWN_GROUP") != ""},
	}
	if os.Getenv("WGR_STRESS_TTY") != "" {
		if err := unix.IoctlSetInt(serverIn, unix.TIOCSCTTY, 0); err != nil {
			fmt.Println("error", err)
			return 1
		}
		attr.Sys = &syscall.SysProcAttr{Foreground: true, Ctty: serverIn}
	}
	pid, err := syscall.ForkExec(os.Args[1], os.Args[1:], attr)
	if err != nil {
		fmt.Println("error", err)
		return 1
	}
	for _, fd := range []int{serverIn, serverOut, serverErr} {
		_ = unix.Close(fd)
	}
	fmt.Println("wrapper", pid)
	go func() {
		var ws unix.WaitStatus
		for {
			if _, err := unix.Wait4(pid, &ws, 0, nil); err != unix.EINTR {
				return
			}
		}
	}()
	in, out, errs := clientEnd(clientIn), clientEnd(clientOut), clientEnd(clientErr)
	stalled := os.Getenv("WGR_STRESS_STALLED") != ""
	read := make(chan struct{})
	if !stalled {
		close(read)
	}
	done := make(chan int)
	go func() {
		<-read
		done <- receive(out)
	}()
	go send(in, stalled)
	go func() {
		<-read
		_, _ = io.Copy(io.Discard, errs)
	}()
	go func() {
		for orders := bufio.NewScanner(os.Stdin); orders.Scan(); {
			switch orders.Text() {
			case "close in":
				_ = in.Close()
			case "close out":
				_ = out.Close()
			case "close err":
				_ = errs.Close()
			case "read":
				if stalled {
					stalled = false
					close(read)
				}
			}
		}
	}()
	return <-done
}

func clientEnd(fd int) *os.File {
	_ = unix.SetNonblock(fd, true) // so that Close ends a write; it is our end alone
	return os.NewFile(uintptr(fd), "wire")
}

// receive reads frames to the end, and reports how many have come and how many
// of them were not the one that had to come.
func receive(out *os.File) int {
	frames, wrong := 0, 0
	lines := bufio.NewReaderSize(out, 64<<10)
	for {
		line, err := lines.ReadString('\n')
		if err != nil {
			break // what is without its LF was not written in full
		}
		if line != frame(frames) {
			wrong++
		}
		frames++
	}
	fmt.Println("frames", frames, wrong)
	return 0
}

// frame is the message that a server sends as its nth.
func frame(n int) string {
	return fmt.Sprintf(`{"jsonrpc":"2.0","method":"F","params":[%d,"%s"]}`+"\n", n, strings.Repeat("x", 1+n*37%3000))
}

// send sends lines until it can't: slowly, or as fast as it can.
func send(in *os.File, flood bool) {
	for n := 0; ; n++ {
		if _, err := fmt.Fprintf(in, `{"jsonrpc":"2.0","id":%d,"method":"Q"}`+"\n", n); err != nil {
			return
		}
		if !flood {
			time.Sleep(20 * time.Millisecond)
		}
	}
}

// server serves on the wire and has the descendants that its arguments name.
// How it behaves is in WGR_STRESS_SERVER, a list of words.
func server() int {
	words := os.Getenv("WGR_STRESS_SERVER")
	stubborn := strings.Contains(words, "stubborn")
	if stubborn {
		signal.Ignore(unix.SIGTERM, unix.SIGHUP, unix.SIGINT)
	}
	pidFile := os.Getenv("WGR_STRESS_FILE") + ".pid"
	_ = os.WriteFile(pidFile, []byte(strconv.Itoa(os.Getpid())), 0o600)
	for _, kind := range os.Args[1:] {
		startLeaf(kind)
	}
	in, out := number("WIREGUARDRUN_IN"), number("WIREGUARDRUN_OUT")
	if strings.Contains(words, "unmodified") {
		in, out = 0, 1
	}
	if strings.Contains(words, "tty") {
		changeModes(in)
	}
	ended := make(chan struct{})
	stalled := strings.Contains(words, "stalled")
	if !stalled {
		go func() {
			drain(in)
			close(ended)
		}()
	}
	broken := make(chan struct{})
	go func() {
		produce(out, stalled, strings.Contains(words, "noisy"))
		close(broken)
	}()
	if stubborn {
		for {
			time.Sleep(time.Hour)
		}
	}
	select {
	case <-ended:
	case <-broken:
		return 3
	}
	return 0
}

func number(variable string) int {
	n, err := strconv.Atoi(os.Getenv(variable))
	if err != nil {
		return -1
	}
	return n
}

func drain(fd int) {
	buf := make([]byte, 64<<10)
	for {
		if n, err := unix.Read(fd, buf); n <= 0 && err != unix.EINTR {
			return
		}
	}
}

// produce writes numbered frames until the wire is broken, and keeps the
// number of those that were written in full in a file. A noisy server prints
// beside that.
func produce(fd int, flood, noisy bool) {
	file, err := unix.Open(os.Getenv("WGR_STRESS_FILE"), unix.O_RDWR|unix.O_CREAT|unix.O_CLOEXEC, 0o600)
	if err != nil {
		return
	}
	var count [8]byte
	for n := 0; ; n++ {
		if noisy && n%3 == 0 {
			_, _ = unix.Write(1, []byte("frame "+strconv.Itoa(n)+" is next\n"))
		}
		for rest := []byte(frame(n)); len(rest) > 0; {
			m, err := unix.Write(fd, rest)
			if err != nil && err != unix.EINTR {
				return
			}
			rest = rest[max(m, 0):]
		}
		binary.LittleEndian.PutUint64(count[:], uint64(n+1))
		_, _ = unix.Pwrite(file, count[:], 0)
		if !flood {
			time.Sleep(2 * time.Millisecond)
		}
	}
}

// changeModes does what a server that asks for a password does.
func changeModes(fd int) {
	modes, err := unix.IoctlGetTermios(fd, unix.TCGETS)
	if err != nil {
		return
	}
	modes.Iflag ^= unix.IGNBRK
	modes.Cc[unix.VTIME]++
	_ = unix.IoctlSetTermios(fd, unix.TCSETS, modes)
}

// leafCommands are descendants that do nothing but live, and one that never
// stops to give birth.
var leafCommands = map[string]string{
	"polite":   "exec sleep 300",
	"stubborn": "trap '' TERM HUP INT; exec sleep 300",
	"births":   "trap '' TERM HUP INT; while :; do setsid sleep 0.2 & sleep 0.05; done",
}

// startLeaf starts one descendant: "place temper", with a place of "group",
// "own" (a group), "session" or "twice" (a session, and its parent ends). An
// appended "wire" lets it have the wire.
func startLeaf(kind string) {
	words := strings.Fields(kind)
	cmd := exec.Command("sh", "-c", leafCommands[words[1]])
	switch words[0] {
	case "own":
		cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	case "session":
		cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	case "twice":
		cmd = exec.Command("sh", "-c", "setsid sh -c \"$1\" & exit", "sh", leafCommands[words[1]])
	}
	if len(words) > 2 {
		cmd.Stdin, cmd.Stdout, cmd.ExtraFiles = os.Stdin, os.Stdout, wireFiles()
	}
	if cmd.Start() == nil {
		go func() { _ = cmd.Wait() }()
	}
}

// wireFiles returns the wire as files, always the same: one that is collected
// would close its descriptor.
var wireFiles = sync.OnceValue(func() (files []*os.File) {
	for fd := 3; fd <= number("WIREGUARDRUN_OUT"); fd++ {
		files = append(files, os.NewFile(uintptr(fd), "wire"))
	}
	return files
})

// shellLeaf is startLeaf for a shell, which is faster: its words are put
// before the server.
func shellLeaf(kind string) string {
	words := strings.Fields(kind)
	command := "sh -c \"" + leafCommands[words[1]] + "\""
	if len(words) < 3 {
		command += " 3<&- 4>&-"
	}
	switch words[0] {
	case "session":
		return "setsid " + command + " & "
	case "twice":
		return "(setsid " + command + " & exit) & "
	default:
		return command + " & "
	}
}
