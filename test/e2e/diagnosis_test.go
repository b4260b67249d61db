package e2e

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

const (
	ping = `{"jsonrpc":"2.0","id":1,"method":"ping"}` + "\n"
	pong = `{"jsonrpc":"2.0","id":1,"result":{}}` + "\n"
)

// startSteps starts a server that does the steps of a case, given as JSON, once
// it has read a ping.
func startSteps(t *testing.T, flags []string, steps string) *session {
	t.Helper()
	text, err := json.Marshal(ping)
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "case.json")
	if err := os.WriteFile(path, fmt.Appendf(nil, `{"client":[%s],"server":%s}`, text, steps), 0o600); err != nil {
		t.Fatal(err)
	}
	if len(flags) == 0 || !strings.HasPrefix(flags[0], "--wire") {
		flags = append([]string{"--wire=auto"}, flags...)
	}
	return start(t, Options{Flags: flags, Role: caseServer, RoleArgs: []string{path, t.TempDir()}})
}

// out is a step that writes text on the server's standard output.
func out(text string) string {
	quoted, err := json.Marshal(text)
	if err != nil {
		panic(err)
	}
	return fmt.Sprintf(`{"out":%s}`, quoted)
}

// The first output that is no message is told, and where it goes; at the end
// the session is told in numbers.
func TestStrayIsTold(t *testing.T) {
	dir := t.TempDir()
	for _, tt := range []struct{ flag, first string }{
		{"stderr", "it follows here\n"},
		{"null", "it is dropped (--stray=null)\n"},
		{"log", "it follows here, line by line\n"},
		{"file:" + filepath.Join(dir, "stray"), "it goes to " + filepath.Join(dir, "stray") + "\n"},
	} {
		t.Run(tt.flag, func(t *testing.T) {
			s := startSteps(t, []string{"--stray=" + tt.flag}, "["+out("one\n")+","+out("two\n")+","+out(pong)+"]")
			s.Send(ping)
			s.Expect(pong)
			s.ExpectEnd()
			s.ExpectExit(Status{})
			if n := strings.Count(s.Stderr(), "the client does not get it"); n != 1 || !strings.Contains(s.Stderr(), tt.first) {
				t.Errorf("told %d times:\n%s", n, s.Stderr())
			}
			if want := "the session in numbers  messages=1 stray_lines=2 stray_bytes=8\n"; !strings.HasSuffix(s.Stderr(), want) {
				t.Errorf("standard error has\n%s\nwhich does not end with\n%s", s.Stderr(), want)
			}
		})
	}
}

// A response in which another print has landed is stray, and the request is told
// to have no answer.
func TestTornResponse(t *testing.T) {
	file := filepath.Join(t.TempDir(), "summary")
	torn := strings.TrimSuffix(pong, "}\n")
	s := startSteps(t, []string{"--summary=" + file}, "["+out(torn)+","+out("a print\n")+","+out("}\n")+"]")
	s.Send(ping)
	s.ExpectEnd()
	s.ExpectExit(Status{})
	if want := " unanswered=1\n"; !strings.HasSuffix(s.Stderr(), want) {
		t.Errorf("standard error has\n%s\nwhich does not end with\n%s", s.Stderr(), want)
	}
	if got := readSummary(t, file); got.Unanswered != 1 {
		t.Errorf("%+v", got)
	}
}

func TestStrayLogOfARelay(t *testing.T) {
	s := startSteps(t, []string{"--stray=log", "--log-format=json"}, "["+out("one\r\ntwo")+","+out("\n"+pong)+"]")
	s.Send(ping)
	s.Expect(pong)
	s.ExpectEnd()
	s.ExpectExit(Status{})
	if got := fmt.Sprint(strayLines(t, s)); got != "[stdout: one stdout: two]" {
		t.Errorf("the log has %s:\n%s", got, s.Stderr())
	}
}

// strayLines is what --stray=log has made of a server's output, each line with
// its source.
func strayLines(t *testing.T, s *session) (lines []string) {
	t.Helper()
	for text := range strings.Lines(s.Stderr()) {
		var event struct{ Message, Source, Line string }
		if err := json.Unmarshal([]byte(text), &event); err != nil {
			t.Errorf("%q: %v", text, err)
		}
		if event.Message == "stray output" {
			lines = append(lines, event.Source+": "+event.Line)
		}
	}
	return lines
}

// Where nothing happens nothing is said.
func TestQuietSession(t *testing.T) {
	s := startSteps(t, nil, "["+out(pong)+"]")
	s.Send(ping)
	s.Expect(pong)
	s.ExpectEnd()
	s.ExpectExit(Status{})
	wantStderr(s, "")
}

func TestServerThatServesNobody(t *testing.T) {
	quoted, _ := json.Marshal(pong)
	for name, tt := range map[string]struct {
		flags       []string
		steps, want string
	}{
		"writes to standard error": {nil, `[{"err":` + string(quoted) + `}]`, "standard error has text that looks like messages"},
		"says nothing":             {nil, `[]`, "may tell why"},
		"does not know of the descriptors": {[]string{"--wire=fds"}, `[]`,
			fmt.Sprintf("unread  bytes=%d", len(ping))},
	} {
		t.Run(name, func(t *testing.T) {
			s := startSteps(t, tt.flags, tt.steps)
			s.Send(ping)
			s.ExpectEnd()
			s.ExpectExit(Status{})
			if !strings.Contains(s.Stderr(), tt.want) {
				t.Errorf("standard error has\n%s\nwhich lacks %q", s.Stderr(), tt.want)
			}
		})
	}
}

// sessionSummary is what the tests look at of a summary.
type sessionSummary struct {
	Version, Command, Wire, Server, Framing string
	In, Out                                 struct{ Frames, Bytes int64 }
	Stray                                   map[string]struct{ Bytes, Lines int64 }
	Repairs                                 map[string]int64
	Glued, Copies, Dropped, Unanswered      int64
	Exit                                    struct{ Code, Signal int }
	EndedBy                                 string `json:"ended_by"`
	Seconds                                 float64
}

func readSummary(t *testing.T, path string) (s sessionSummary) {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(text, &s); err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	if s.Version == "" || s.Command == "" || s.Seconds <= 0 {
		t.Errorf("the summary lacks something: %s", text)
	}
	return s
}

func TestSummary(t *testing.T) {
	path := filepath.Join(t.TempDir(), "summary")
	crlf := strings.TrimSuffix(pong, "\n") + "\r\n"
	s := startSteps(t, []string{"--summary=" + path}, "["+out("one\ntwo\n")+","+out(crlf)+`,{"err":"note\n"}]`)
	s.Send(ping)
	s.Expect(pong)
	s.ExpectEnd()
	s.ExpectExit(Status{})
	got := readSummary(t, path)
	got.Version, got.Command, got.Seconds = "", "", 0
	want := sessionSummary{
		Wire: "auto", Server: "unmodified", Framing: "jsonrpc", EndedBy: "server",
		Repairs: map[string]int64{"CR before LF": 1},
	}
	want.In.Frames, want.In.Bytes = 1, int64(len(ping))
	want.Out.Frames, want.Out.Bytes = 1, int64(len(pong))
	want.Stray = map[string]struct{ Bytes, Lines int64 }{"stdout": {8, 2}, "extra": {}, "stderr": {5, 1}}
	if fmt.Sprintf("%+v", got) != fmt.Sprintf("%+v", want) {
		t.Errorf("the summary is\n%+v\nwant\n%+v", got, want)
	}
}

// A summary is appended, and is one line; on standard error too. The server's
// status is in it.
func TestSummaryOfASessionThatFails(t *testing.T) {
	path := filepath.Join(t.TempDir(), "summary")
	if err := os.WriteFile(path, []byte("{}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, flags := range [][]string{{"--summary=" + path}, {"--summary"}} {
		s := start(t, Options{Flags: flags, Role: server})
		s.Send("exit 42\n")
		s.ExpectEnd()
		s.ExpectExit(Status{Code: 42})
		text := s.Stderr()
		if flags[0] != "--summary" {
			wantStderr(s, "")
			file, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			text = strings.TrimPrefix(string(file), "{}\n")
		}
		var got sessionSummary
		if err := json.Unmarshal([]byte(text), &got); err != nil || strings.Count(text, "\n") != 1 || got.Exit.Code != 42 || got.Wire != "fds" {
			t.Errorf("%v: the summary is %q, %v", flags, text, err)
		}
	}
}

func TestSummaryThatCannotBeWritten(t *testing.T) {
	path := filepath.Join(t.TempDir(), "none", "summary")
	s := start(t, Options{Flags: []string{"--summary=" + path}, Role: server})
	s.ExpectEnd()
	s.ExpectExit(Status{Code: 125})
	if got := s.Stderr(); !strings.Contains(got, path) || !strings.Contains(got, "create its directory first") {
		t.Errorf("standard error has %q", got)
	}
}
