//go:build unix

package demo

import (
	"bytes"
	"encoding/json"
	"io"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"

	"github.com/creack/pty"
)

const goodScreen = `One noisy server, one client script, played twice. The client received:

bare                                   | guarded
---------------------------------------+---------------------------------------
noise noisy-server 1.0: 5 tools loaded |
frame {"id":1,"jsonrpc":"2.0","resu... | frame {"id":1,"jsonrpc":"2.0","resu...
noise \r[#  ]\r[## ]\r[###]{"id":2,... | frame {"id":2,"jsonrpc":"2.0","resu...
noise libnative: using 4 threads       |
frame {"id":3,"jsonrpc":"2.0","resu... | frame {"id":3,"jsonrpc":"2.0","resu...
noise {"level":"info","msg":"tool c... |
frame {"id":4,"jsonrpc":"2.0","resu... | frame {"id":4,"jsonrpc":"2.0","resu...
noise subprocess: cache is warm        |
frame {"id":5,"jsonrpc":"2.0","resu... | frame {"id":5,"jsonrpc":"2.0","resu...
frame {"id":6,"jsonrpc":"2.0","resu... | frame {"id":6,"jsonrpc":"2.0","resu...
                                       | frame {"id":7,"jsonrpc":"2.0","resu...
noise noisy-server: goodbye            |

bare:    5 of 7 replies arrived, 6 stray lines on the wire
         request 2 is lost: its reply is glued to noise
         request 7 is lost: never answered
guarded: 7 of 7 replies arrived, 0 stray lines on the wire
         stray output on stderr instead: 5 lines
`

// The screen is the same whatever the caller's environment asks of a guard.
func TestRunGuarded(t *testing.T) {
	t.Setenv("WIREGUARDRUN_OFF", "1")
	t.Setenv("WIREGUARDRUN_IN", "98")
	t.Setenv("WIREGUARDRUN_OUT", "99")
	stdout, stderr, err := run(t, testContext(t), "good")
	if err != nil {
		t.Errorf("error %v", err)
	}
	if stdout != goodScreen {
		t.Errorf("got\n%s\nwant\n%s", stdout, goodScreen)
	}
	if stderr != "" {
		t.Errorf("stderr %q", stderr)
	}
}

func TestRunFailsWithHarmfulGuard(t *testing.T) {
	for kind, want := range map[string]string{
		"drop":   "6 of 7 replies arrived, 0 stray lines",
		"repeat": "replies out of order or repeated: 1, 2, 3, 4, 4, 5, 6, 7",
		"swap":   "replies out of order or repeated: 1, 2, 4, 3, 5, 6, 7",
		"stray":  "7 of 7 replies arrived, 1 stray lines",
	} {
		t.Run(kind, func(t *testing.T) {
			_, stderr, err := run(t, testContext(t), kind)
			if err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("error %v, want %q", err, want)
			}
			if !strings.Contains(stderr, banner) {
				t.Errorf("guarded session's stderr is not shown: %q", stderr)
			}
		})
	}
}

func TestServerAnswersBadInput(t *testing.T) {
	const input = `no JSON

{"jsonrpc":"2.0","id":1,"method":"tools/destroy"}
{"jsonrpc":"2.0","id":"two","method":"tools/call","params":{"name":"none"}}
{"jsonrpc":"2.0","id":3,"method":"tools/call","params":[]}
{"jsonrpc":"2.0","method":"tools/destroy"}
{"jsonrpc":"2.0","id":4,"method":"ping"}` // no LF at the end
	cmd := exec.CommandContext(testContext(t), self(t), "--wire=fds", "--", self(t), "demo", "--role=server")
	cmd.Env = append(cmd.Environ(), guardVariable+"=good")
	cmd.Stdin = strings.NewReader(input)
	out, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	type answer struct {
		ID    any
		Error struct{ Code int }
	}
	var got []answer
	for replies := json.NewDecoder(bytes.NewReader(out)); ; {
		var a answer
		err := replies.Decode(&a)
		if err == io.EOF {
			break
		}
		if err != nil {
			t.Fatalf("%v in %q", err, out)
		}
		got = append(got, a)
	}
	code := func(n int) struct{ Code int } { return struct{ Code int }{n} }
	want := []answer{
		{nil, code(-32700)}, {nil, code(-32700)}, {1.0, code(-32601)},
		{"two", code(-32602)}, {nil, code(-32700)}, {4.0, code(0)},
	}
	if !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}

func TestServerRefuses(t *testing.T) {
	for _, c := range []struct {
		name, in, out, input, want string
	}{
		{"number", "x", "4", "", `WIREGUARDRUN_IN="x" is no descriptor`},
		{"standard stream", "3", "1", "", `WIREGUARDRUN_OUT="1" is no descriptor`},
		{"half a wire", "", "4", "", `WIREGUARDRUN_IN="" is no descriptor`},
		{"closed descriptor", "90", "91", "", "read request: "},
		{"long line", "", "", strings.Repeat("x", maxLine+1), "longer than"},
	} {
		cmd := exec.CommandContext(testContext(t), self(t), "demo", "--role=server")
		cmd.Env = append(cmd.Environ(), "WIREGUARDRUN_IN="+c.in, "WIREGUARDRUN_OUT="+c.out)
		cmd.Stdin = strings.NewReader(c.input)
		var stderr strings.Builder
		cmd.Stderr = &stderr
		_ = cmd.Run()
		if code := cmd.ProcessState.ExitCode(); code != 1 || !strings.Contains(stderr.String(), c.want) {
			t.Errorf("%s: exit code %d, stderr %q", c.name, code, stderr.String())
		}
	}
}

func TestTerminalWidthAndColours(t *testing.T) {
	master, slave, err := pty.Open()
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _, _ = master.Close(), slave.Close() }()
	t.Setenv("TERM", "xterm")
	for _, c := range []struct {
		columns uint16
		want    screen
	}{
		{0, screen{defaultWidth, true}}, // a line that doesn't tell
		{10, screen{minWidth, true}},
		{100, screen{100, true}},
		{1000, screen{maxWidth, true}},
	} {
		if err := pty.Setsize(master, &pty.Winsize{Cols: c.columns, Rows: 24}); err != nil {
			t.Fatal(err)
		}
		unsetenv(t, "NO_COLOR")
		if got := newScreen(slave); got != c.want {
			t.Errorf("%d columns: %+v, want %+v", c.columns, got, c.want)
		}
		t.Setenv("NO_COLOR", "")
		if got := newScreen(slave); got.colour {
			t.Errorf("%d columns: colours in spite of NO_COLOR", c.columns)
		}
	}
}

// unsetenv removes a variable for the length of the test.
func unsetenv(t *testing.T, name string) {
	t.Helper()
	t.Setenv(name, "") // puts it back at the end
	if err := os.Unsetenv(name); err != nil {
		t.Fatal(err)
	}
}
