package demo

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"
)

// guardVariable chooses the stand-in that the re-executed test binary plays
// where Run starts the real program as "wireguardrun --wire=fds -- command".
const guardVariable = "DEMO_TEST_GUARD"

// hangVariable holds the address that the hanging guard reports to.
const hangVariable = "DEMO_TEST_HANG"

func TestMain(m *testing.M) {
	if len(os.Args) > 2 && os.Args[1] == "demo" {
		code, ok := Role(strings.TrimPrefix(os.Args[2], "--role="))
		if !ok {
			code = 2
		}
		os.Exit(code)
	}
	if len(os.Args) > 3 && os.Args[1] == "--wire=fds" {
		if err := guardRole(os.Getenv(guardVariable), os.Args[3:]); err != nil {
			_, _ = fmt.Fprintln(os.Stderr, "stand-in guard:", err)
			os.Exit(125)
		}
		os.Exit(0)
	}
	// A process under the race detector sleeps for a second before it exits.
	_ = os.Setenv("GORACE", os.Getenv("GORACE")+" atexit_sleep_ms=0")
	os.Exit(m.Run())
}

func guardRole(kind string, argv []string) error {
	cmd := exec.Command(argv[0], argv[1:]...)
	switch kind {
	case "pass":
		cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
		return cmd.Run()
	case "refuse":
		return fmt.Errorf("can't claim the wire")
	case "hang":
		conn, err := net.Dial("tcp", os.Getenv(hangVariable))
		if err != nil {
			return err
		}
		_, err = io.Copy(io.Discard, conn) // until the test ends us
		return err
	}

	edit, ok := guardEdits[kind]
	if !ok {
		return fmt.Errorf("no such guard: %q", kind)
	}
	out := os.Stdout
	if edit != nil {
		r, w, err := os.Pipe()
		if err != nil {
			return err
		}
		edited := make(chan struct{})
		go func() {
			defer close(edited)
			for lines := bufio.NewScanner(r); lines.Scan(); {
				_, _ = io.WriteString(os.Stdout, edit(lines.Text()))
			}
		}()
		defer func() {
			_ = w.Close()
			<-edited
		}()
		out = w
	}
	// Stdin stays nil, the null device.
	cmd.Stdout, cmd.Stderr = os.Stderr, os.Stderr
	cmd.ExtraFiles = []*os.File{os.Stdin, out}
	cmd.Env = append(os.Environ(), "WIREGUARDRUN_IN=3", "WIREGUARDRUN_OUT=4")
	return cmd.Run()
}

// guardEdits are guards that keep the wire apart; nil edits nothing, the others
// do each line of the server harm.
var guardEdits = map[string]func(text string) string{
	"good": nil,
	"drop": func(text string) string {
		if isReply(text, "5") {
			return ""
		}
		return text + "\n"
	},
	"repeat": func(text string) string {
		if isReply(text, "4") {
			return text + "\n" + text + "\n"
		}
		return text + "\n"
	},
	"swap": func(text string) string {
		if isReply(text, "3") {
			held = text + "\n"
			return ""
		}
		text, held = text+"\n"+held, ""
		return text
	},
	"stray": func(text string) string {
		if isReply(text, "6") {
			return text + "\nfrom the guard itself\n"
		}
		return text + "\n"
	},
}

var held string // by "swap", until the next line

func isReply(text, id string) bool {
	got, _ := parseReply([]byte(text))
	return got == id
}

func self(t *testing.T) string {
	t.Helper()
	path, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	return path
}

// testContext ends a little before the test's own deadline.
func testContext(t *testing.T) context.Context {
	t.Helper()
	deadline, ok := t.Deadline()
	if !ok {
		return t.Context()
	}
	ctx, cancel := context.WithDeadline(t.Context(), deadline.Add(-time.Second))
	t.Cleanup(cancel)
	return ctx
}
