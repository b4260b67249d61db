//go:build linux

package main

import (
	"fmt"
	"os"
	"strings"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

// life is a session that has a right to go on after something that looks like
// an end. It returns an error when it was ended early.
type life struct {
	name string
	live func(guard, dir, name string) error
}

var lives = []life{
	{"slow worker: answers 8 s after the end of its input", slowWorker},
	{"launcher parent that ends, and others have the pipes", launcherParent},
	{"launcher child that ends (sh -c 'server &')", launcherChild},
	{"log-out under nohup", logOut},
	{"reader of a named FIFO that goes and comes again", reopenedFIFO},
	{"daemon that stays", daemonStays},
	{"server that saves its state for 3 s after TERM", savesState},
}

func countLives(guard, dir string, n int) error {
	var lock sync.Mutex
	good := make([]int, len(lives))
	var why []string
	inTurns(len(lives), n, func(kind, i int) {
		err := lives[kind].live(guard, dir, fmt.Sprintf("life-%d-%d", kind, i))
		lock.Lock()
		defer lock.Unlock()
		if err == nil {
			good[kind]++
		} else {
			why = append(why, fmt.Sprintf("%s: %v", lives[kind].name, err))
		}
	})
	heading("Nothing ends early, %d sessions each, %d at once", n, atOnce)
	row("| session | went on | ended early |")
	row("|---|---|---|")
	for k, l := range lives {
		row("| %s | %d | %d |", l.name, good[k], n-good[k])
	}
	for _, w := range why {
		row("\n%s", w)
	}
	if len(why) > 0 {
		return fmt.Errorf("%d sessions ended early", len(why))
	}
	return nil
}

func guarded(guard, script string) []string {
	return []string{guard, "--wire=fds", "--log-level=error", "--", "sh", "-c", script}
}

func slowWorker(guard, dir, name string) error {
	s, err := open(dir, name, guarded(guard, "echo ready >&4; cat <&3 >/dev/null; sleep 8; echo answer >&4")...)
	if err != nil {
		return err
	}
	defer s.end()
	if err := s.waitLine("ready"); err != nil {
		return err
	}
	s.order(`\eof`)
	if err := s.waitLine("answer"); err != nil {
		return err
	}
	return s.waitLine("ended 0")
}

// launcherParent: our parent is a shell that passes its pipes on and ends.
func launcherParent(guard, dir, name string) error {
	inner := guarded(guard, `echo ready >&4; while read line <&3; do echo "$line" >&4; done`)
	s, err := open(dir, name, append([]string{"sh", "-c", `exec 3<&0; "$@" <&3 3<&- & exec 3<&-; sleep 0.2`, "sh"}, inner...)...)
	if err != nil {
		return err
	}
	defer s.end()
	if err := s.waitLine("ready"); err != nil {
		return err
	}
	// Past every time of the rules; the client itself reports the end of the
	// launcher, so its word is not waited for by waitLine.
	time.Sleep(9 * time.Second)
	return s.echo()
}

// launcherChild: our child ends at once and has left the server behind.
func launcherChild(guard, dir, name string) error {
	s, err := open(dir, name, guarded(guard, `exec 5<&3; (echo ready >&4; while read line <&5; do echo "$line" >&4; done) &`)...)
	if err != nil {
		return err
	}
	defer s.end()
	if err := s.waitLine("ready"); err != nil {
		return err
	}
	time.Sleep(9 * time.Second)
	return s.echo()
}

func (s *session) echo() error {
	s.order("hello")
	for limit := time.After(patience); ; {
		select {
		case line, ok := <-s.lines:
			if !ok {
				return fmt.Errorf("the client has ended")
			}
			if line == "hello" {
				return nil
			}
		case <-limit:
			return fmt.Errorf("no answer")
		}
	}
}

// logOut: nohup, output to a file, and then the death of the client and a HUP.
func logOut(guard, dir, name string) error {
	inner := guarded(guard, "echo $$ > pid; sleep 9; echo done >&4; echo done > done")
	s, err := open(dir, name, append([]string{"nohup", "sh", "-c", `"$@" </dev/null >out 2>/dev/null`, "sh"}, inner...)...)
	if err != nil {
		return err
	}
	defer s.end()
	if !until(func() bool { return s.pid() > 0 }) {
		return fmt.Errorf("it does not start")
	}
	time.Sleep(200 * time.Millisecond)
	for _, pid := range s.processes() {
		_ = unix.Kill(pid, unix.SIGHUP)
	}
	s.killClient()
	if !until(func() bool { return s.exists("done") }) {
		return fmt.Errorf("it is killed")
	}
	out, _ := os.ReadFile(s.path("out"))
	if strings.TrimSpace(string(out)) != "done" {
		return fmt.Errorf("the output is %q", out)
	}
	return nil
}

// reopenedFIFO: a named FIFO has no reader for longer than the rules wait.
func reopenedFIFO(guard, dir, name string) error {
	inner := guarded(guard, `trap '' PIPE; echo $$ > pid; while read line <&3; do echo "$line" >&4; done`)
	s, err := open(dir, name, append([]string{"sh", "-c", `mkfifo fifo; touch made; exec "$@" 1<>fifo 1>fifo`, "sh"}, inner...)...)
	if err != nil {
		return err
	}
	defer s.end()
	if !until(func() bool { return s.exists("made") }) {
		return fmt.Errorf("no FIFO")
	}
	if err := s.readFIFO(); err != nil {
		return err
	}
	time.Sleep(7 * time.Second)
	return s.readFIFO()
}

func (s *session) readFIFO() error {
	f, err := os.OpenFile(s.path("fifo"), os.O_RDONLY|unix.O_NONBLOCK, 0)
	if err != nil {
		return err
	}
	defer f.Close()
	if !until(func() bool { return s.pid() > 0 }) {
		return fmt.Errorf("it does not start")
	}
	s.order("hello")
	buf := make([]byte, 16)
	for limit := time.Now().Add(10 * time.Second); time.Now().Before(limit); time.Sleep(10 * time.Millisecond) {
		if n, _ := f.Read(buf); n > 0 {
			return nil
		}
	}
	return fmt.Errorf("no answer")
}

// daemonStays: on a normal end a process that left the group is left alone.
func daemonStays(guard, dir, name string) error {
	s, err := open(dir, name, guarded(guard, `setsid sh -c 'echo $$ > pid; exec sleep 300' 3<&- 4>&- & echo ready >&4; cat <&3 >/dev/null`)...)
	if err != nil {
		return err
	}
	defer s.end()
	if err := s.waitLine("ready"); err != nil {
		return err
	}
	if !until(func() bool { return s.pid() > 0 }) {
		return fmt.Errorf("no daemon")
	}
	s.order(`\eof`)
	if err := s.waitLine("ended 0"); err != nil {
		return err
	}
	time.Sleep(7 * time.Second) // the keeper's time, and more
	if unix.Kill(s.pid(), 0) != nil {
		return fmt.Errorf("the daemon is killed")
	}
	return nil
}

// savesState: the client is killed, and the server gets its whole time.
func savesState(guard, dir, name string) error {
	s, err := open(dir, name, guarded(guard, `trap 'sleep 3; echo saved > saved; exit' TERM; echo ready >&4; while :; do sleep 0.1; done`)...)
	if err != nil {
		return err
	}
	defer s.end()
	if err := s.waitLine("ready"); err != nil {
		return err
	}
	s.killClient()
	if !until(func() bool { return s.exists("saved") }) {
		return fmt.Errorf("killed while it saved")
	}
	return nil
}

// until waits for what another process does.
func until(done func() bool) bool {
	for limit := time.Now().Add(20 * time.Second); time.Now().Before(limit); time.Sleep(10 * time.Millisecond) {
		if done() {
			return true
		}
	}
	return done()
}
