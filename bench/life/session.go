//go:build linux

package main

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

const (
	// clientWord as the first argument makes this program a client.
	clientWord = "as-client"
	// markEnv marks every process below a client.
	markEnv = "LIFE_MARK"
	// patience turns a hang into a failure.
	patience = 30 * time.Second
)

// session is a client, which is a process of its own, and what it started.
type session struct {
	mark   string
	dir    string // empty, where its processes run
	client *exec.Cmd
	orders io.WriteCloser
	lines  chan string // that came over the wire
}

// open starts a client that starts argv on pipes that it holds.
func open(dir, name string, argv ...string) (*session, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	s := &session{
		mark: fmt.Sprintf("%d-%s", os.Getpid(), name), dir: filepath.Join(dir, name),
		client: exec.Command(self, append([]string{clientWord}, argv...)...),
		lines:  make(chan string, 64),
	}
	if err := os.Mkdir(s.dir, 0o700); err != nil {
		return nil, err
	}
	s.client.Dir, s.client.Stderr = s.dir, os.Stderr
	s.client.Env = append(os.Environ(), "LIFE_SESSION="+s.mark)
	if s.orders, err = s.client.StdinPipe(); err != nil {
		return nil, err
	}
	out, err := s.client.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := s.client.Start(); err != nil {
		return nil, err
	}
	go func() {
		defer close(s.lines)
		for text := bufio.NewScanner(out); text.Scan(); {
			s.lines <- text.Text()
		}
	}()
	return s, nil
}

// waitLine waits for a line that the server sends, or for "ended STATUS" of
// the client when wireguardrun has ended.
func (s *session) waitLine(want string) error {
	for limit := time.After(patience); ; {
		select {
		case line, ok := <-s.lines:
			switch {
			case !ok:
				return fmt.Errorf("no %q: the client has ended", want)
			case line == want:
				return nil
			case strings.HasPrefix(line, "ended"):
				return fmt.Errorf("no %q: wireguardrun has %s", want, line)
			}
		case <-limit:
			return fmt.Errorf("no %q in %v", want, patience)
		}
	}
}

// order sends a line to the server, or ends the server's input with "\eof".
func (s *session) order(line string) { _, _ = io.WriteString(s.orders, line+"\n") }

func (s *session) killClient() { _ = s.client.Process.Kill() }

func (s *session) path(name string) string { return filepath.Join(s.dir, name) }

func (s *session) exists(name string) bool {
	_, err := os.Stat(s.path(name))
	return err == nil
}

// pid is what a script has written to the file of that name.
func (s *session) pid() int {
	data, _ := os.ReadFile(s.path("pid"))
	n, _ := strconv.Atoi(strings.TrimSpace(string(data)))
	return n
}

// processes returns what lives of the session below the client.
func (s *session) processes() (pids []int) {
	dir, err := os.Open("/proc")
	if err != nil {
		return nil
	}
	defer dir.Close()
	names, _ := dir.Readdirnames(-1)
	for _, name := range names {
		pid, err := strconv.Atoi(name)
		if err != nil {
			continue
		}
		env, _ := os.ReadFile("/proc/" + name + "/environ")
		if bytes.Contains(env, []byte(markEnv+"="+s.mark+"\x00")) {
			pids = append(pids, pid)
		}
	}
	return pids
}

// end ends all that there is.
func (s *session) end() {
	_ = s.client.Process.Kill()
	_ = s.client.Wait()
	for range 200 {
		pids := s.processes()
		if len(pids) == 0 {
			break
		}
		for _, pid := range pids {
			_ = unix.Kill(pid, unix.SIGKILL)
		}
		time.Sleep(5 * time.Millisecond)
	}
	_ = os.RemoveAll(s.dir)
}

// playClient is the client's life: lines from standard input go to the server,
// and what the server sends goes to standard output.
func playClient(argv []string) int {
	signal.Ignore(unix.SIGPIPE)
	cmd := exec.Command(argv[0], argv[1:]...)
	cmd.Env = append(os.Environ(), markEnv+"="+os.Getenv("LIFE_SESSION"))
	cmd.Stderr = os.Stderr
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	// Not StdinPipe, which Wait would close.
	stdin, in, err := os.Pipe()
	if err != nil {
		return 1
	}
	r, w, err := os.Pipe()
	if err != nil {
		return 1
	}
	cmd.Stdin, cmd.Stdout = stdin, w
	if err := cmd.Start(); err != nil {
		fmt.Fprintln(os.Stderr, "life:", err)
		return 1
	}
	_ = stdin.Close()
	_ = w.Close()
	go func() {
		for lines := bufio.NewScanner(os.Stdin); lines.Scan(); {
			if lines.Text() == `\eof` {
				_ = in.Close()
				continue
			}
			_, _ = io.WriteString(in, lines.Text()+"\n")
		}
	}()
	copied := make(chan bool)
	go func() {
		_, _ = io.Copy(os.Stdout, r)
		close(copied)
	}()
	// The client lives on, as many do, until it is killed.
	_ = cmd.Wait()
	select {
	case <-copied:
	case <-time.After(time.Second): // a daemon has the wire
	}
	fmt.Println("ended", cmd.ProcessState.ExitCode())
	time.Sleep(time.Hour)
	return 0
}
