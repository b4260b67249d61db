//go:build unix

package e2e

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// pythonTools are the tools of examples/mcp-python; each makes its own kind of
// noise.
var pythonTools = []string{
	"print", "print_flush", "print_unfinished", "print_answer", "print_notification", "stdout_write",
	"os_write", "native_puts", "native_flush", "log", "warn", "child_prints", "child_reads", "child_inherits",
}

// pythonExample returns the two scripts of examples/mcp-python, and the
// interpreter that has their packages.
func pythonExample(t *testing.T) (python, server, launcher string) {
	t.Helper()
	dir, err := filepath.Abs(filepath.Join(moduleRoot, "examples", "mcp-python"))
	if err != nil {
		t.Fatal(err)
	}
	return pythonWith(t, filepath.Join(dir, "requirements.txt")),
		filepath.Join(dir, "server.py"), filepath.Join(dir, "launcher.sh")
}

// drivePython lets the SDK's client do the job with the command. Job and report
// are those of client.mjs; client.py explains where they differ.
func drivePython(t *testing.T, python string, job nodeJob, command ...string) nodeReport {
	t.Helper()
	text, err := json.Marshal(job)
	if err != nil {
		t.Fatal(err)
	}
	client := filepath.Join("testdata", "python", "client.py")
	// launcher.sh starts both by their names.
	path := strings.Join([]string{filepath.Dir(wireguardrun), filepath.Dir(python), os.Getenv("PATH")},
		string(os.PathListSeparator))
	out, errOut, status := run(t, Options{
		Bare:    true,
		Command: append([]string{python, client, string(text)}, command...),
		Env:     append([]string{"PATH=" + path}, pythonEnv...),
	}, "")
	if status != (Status{}) {
		t.Fatalf("the client ended with %v: %s", status, errOut)
	}
	var report nodeReport
	if err := json.Unmarshal([]byte(out), &report); err != nil {
		t.Fatalf("the client's report: %v: %s", err, out)
	}
	return report
}

func TestPythonSDKServer(t *testing.T) {
	python, server, launcher := pythonExample(t)
	launched := []string{noiseOf("launcher", "at start")}
	// Two of them look like messages.
	around := []string{
		noiseOf("print_flush", "at start"), noiseOf("child_prints", "at start"),
		noiseOf("print_answer", "at start"), noiseOf("print_notification", "at start"),
		noiseOf("print", "at exit"),
	}
	for _, tt := range []struct {
		name    string
		command []string
		calls   []string
		noise   []string // beside that of the tools
	}{
		{"handed down", []string{wireguardrun, "--wire=fds", "--", python, server, "--around"}, pythonTools, around},
		{"attached", []string{wireguardrun, "--wire=fds", "--", "sh", launcher}, pythonTools, launched},
		{"relayed", []string{wireguardrun, "--", python, server, "--around"}, without(pythonTools, stdinReader), around},
		{"relayed and attached", []string{wireguardrun, "--", "sh", launcher}, pythonTools, launched},
		// The SDK takes standard input and output away from what it starts, but
		// knows nothing of the other pair.
		{"unmodified", slices.Concat([]string{wireguardrun, "--"}, unaware, []string{python, server}),
			without(pythonTools, "child_inherits"), launched},
		{"behind a launcher", slices.Concat([]string{wireguardrun, "--"}, pythonLauncher(python, "", server)), pythonTools, nil},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			r := drivePython(t, python, allCalls(tt.calls), tt.command...)
			checkNodeReport(t, r, pythonTools, tt.calls)
			for _, noise := range tt.noise {
				if !strings.Contains(r.Stderr, noise) {
					t.Errorf("standard error lacks %q: %s", noise, r.Stderr)
				}
			}
		})
	}
}

// The same server without wireguardrun. Its SDK takes standard input and output
// for itself; what is printed before it has done so reaches the client. What
// comes at the end TestPythonSDKServerEnds shows.
func TestPythonSDKServerUnguarded(t *testing.T) {
	python, server, _ := pythonExample(t)
	r := drivePython(t, python, nodeJob{Alone: []string{"print_flush"}}, python, server, "--around")
	errors := strings.Join(r.Errors, "\n")
	for _, want := range []string{
		noiseOf("print_flush", "at start"), noiseOf("child_prints", "at start"), "unknown/late request id 999999",
	} {
		if !strings.Contains(errors, want) {
			t.Errorf("the client has no error about %q, but: %s", want, errors)
		}
	}
	if len(r.Notifications) != 1 {
		t.Errorf("the client has notifications %s, want the printed one", r.Notifications)
	}
}

// pythonSession starts the server and brings it to the point where it takes
// calls. What was on standard output before its first answer is returned.
func pythonSession(t *testing.T, o Options) (s *session, early string) {
	t.Helper()
	o.Env = append(o.Env, pythonEnv...)
	s = start(t, o)
	s.Send(initialize)
	for {
		line := s.ReadLine()
		if strings.Contains(line, `"serverInfo":{"name":"noisy"`) {
			break
		}
		early += line + "\n"
	}
	s.Send(`{"jsonrpc":"2.0","method":"notifications/initialized"}` + "\n")
	return s, early
}

// pythonCall is a call of a tool with a note that needs no escapes.
func pythonCall(tool, note string) string {
	return fmt.Sprintf(`{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"%s","arguments":{"note":"%s"}}}`+"\n", tool, note)
}

// expectText reads the answer to a call, which must have the text.
func expectText(s *session, want string) {
	s.t.Helper()
	var answer struct {
		ID     int
		Result struct{ Content []struct{ Text string } }
	}
	line := s.ReadLine()
	if err := json.Unmarshal([]byte(line), &answer); err != nil {
		s.t.Fatalf("the answer is %s: %v", clip(line), err)
	}
	if answer.ID != 2 || len(answer.Result.Content) != 1 || answer.Result.Content[0].Text != want {
		s.t.Fatalf("the answer is %s, want the text %s", clip(line), clip(want))
	}
}

// The end of the input ends the server with success. Python and the C library
// then write what their buffers still hold, and the SDK has given descriptor 1
// back by then, if it ever took it.
func TestPythonSDKServerEnds(t *testing.T) {
	python, server, _ := pythonExample(t)
	last := []string{noiseOf("print", "buffered"), noiseOf("native_puts", "buffered")}
	plain, around := []string{python, server}, []string{python, server, "--around"}
	for _, tt := range []struct {
		name string
		o    Options
	}{
		{"pipes", Options{Command: around}},
		{"sockets", Options{Command: around, Sockets: true}},
		{"unguarded", Options{Command: around, Bare: true}},
		{"relayed", Options{Command: around, Flags: []string{"--wire=auto"}}},
		// Where it speaks is not clear before its first answer: a message that
		// it prints until then is one.
		{"unmodified", Options{Command: slices.Concat(unaware, plain), Flags: []string{"--wire=auto"}}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			last := last
			if slices.Contains(tt.o.Command, "--around") {
				last = append(slices.Clone(last), noiseOf("print", "at exit"))
			}
			s, early := pythonSession(t, tt.o)
			for _, tool := range []string{"print", "native_puts"} {
				s.Send(pythonCall(tool, "buffered"))
				expectText(s, tool+" buffered")
			}
			s.CloseStdin()
			late := s.Rest()
			s.ExpectExit(Status{})
			where, what := "standard error", s.Stderr()
			if tt.o.Bare {
				where, what = "standard output", late
			} else if early != "" || late != "" {
				t.Errorf("standard output has %q before the first answer and %q at the end", early, late)
			}
			for _, noise := range last {
				if !strings.Contains(what, noise) {
					t.Errorf("%s lacks %q: %q", where, noise, what)
				}
			}
		})
	}
}

// Nothing that a client may send ends the session or is lost.
func TestPythonSDKServerReads(t *testing.T) {
	python, server, _ := pythonExample(t)
	s, _ := pythonSession(t, Options{Command: []string{python, server}})
	big := strings.Repeat("0123456789abcdef", 1<<16)
	for _, tt := range []struct{ call, note string }{
		{strings.Replace(pythonCall("print", "CR LF"), "\n", "\r\n", 1), "CR LF"},
		{strings.Replace(pythonCall("print", "CR"), ",", ",\r", 1), "CR"},
		{pythonCall("print", "caf\xe9"), "caf\ufffd"},
		{pythonCall("print", "line\u2028separator"), "line\u2028separator"},
		{pythonCall("print", big), big},
	} {
		s.Send(tt.call)
		expectText(s, "print "+tt.note)
	}
	s.CloseStdin()
	s.ExpectEnd()
	s.ExpectExit(Status{})
}

// pythonLauncher is the command of a launcher in Python, which closes the
// descriptors in what it starts unless an option says otherwise.
func pythonLauncher(python, option, server string) []string {
	script := "import subprocess, sys; sys.exit(subprocess.run([sys.executable, *sys.argv[1:]]" + option + ").returncode)"
	return []string{python, "-c", script, server}
}

func TestPythonSDKServerLostWire(t *testing.T) {
	python, server, _ := pythonExample(t)
	t.Run("subprocess", func(t *testing.T) {
		checkLostWire(t, Options{Command: pythonLauncher(python, "", server), Env: pythonEnv})
	})
	for name, launcher := range wireLosers {
		t.Run(name, func(t *testing.T) {
			checkLostWire(t, Options{Command: slices.Concat(launcher, []string{python, server}), Env: pythonEnv})
		})
	}
}

func TestPythonSDKServerLauncherGivesOn(t *testing.T) {
	python, server, _ := pythonExample(t)
	s, _ := pythonSession(t, Options{Command: pythonLauncher(python, ", pass_fds=(3, 4)", server)})
	s.Send(pythonCall("print", "x"))
	expectText(s, "print x")
	s.CloseStdin()
	s.ExpectEnd()
	s.ExpectExit(Status{})
}
