package e2e

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// A wire case says what the client sends, what an unmodified server writes,
// and which bytes must arrive on the wire and in the stray file. The files are
// in test/cases; one character of a string is one byte.
type wireCase struct {
	Why         string     `json:"why"`
	Flags       []string   `json:"flags"`
	Client      []rawBytes `json:"client"`
	HoldStdin   *bool      `json:"hold_stdin"`
	ServerWaits *bool      `json:"server_waits"`
	Server      []wireStep `json:"server"`
	Wire        rawBytes   `json:"wire"`
	WireTimes   int        `json:"wire_times"`
	Stray       *rawBytes  `json:"stray"`
	Exit        int        `json:"exit"`
	StderrHas   []rawBytes `json:"stderr_has"`
	StderrLacks []rawBytes `json:"stderr_lacks"`
}

// wireStep is one thing that the server does.
type wireStep struct {
	Out       rawBytes `json:"out"`
	Times     int      `json:"times"`
	Err       rawBytes `json:"err"`
	SleepMS   int      `json:"sleep_ms"`
	GapMS     *int     `json:"gap_ms"`
	WaitWire  int      `json:"wait_wire"`
	WaitStray int      `json:"wait_stray"`
	ReadToEOF bool     `json:"read_to_eof"`
}

// rawBytes is a string of which each character is a byte, or a list of
// [text, times].
type rawBytes []byte

func (b *rawBytes) UnmarshalJSON(data []byte) error {
	*b = nil
	var text string
	if err := json.Unmarshal(data, &text); err == nil {
		*b = latin1(text)
		return nil
	}
	var runs [][2]any
	if err := json.Unmarshal(data, &runs); err != nil {
		return err
	}
	for _, run := range runs {
		text, isText := run[0].(string)
		times, isNumber := run[1].(float64)
		if !isText || !isNumber {
			return fmt.Errorf("%v is not [text, times]", run)
		}
		*b = append(*b, bytes.Repeat(latin1(text), int(times))...)
	}
	return nil
}

func latin1(text string) []byte {
	raw := make([]byte, 0, len(text))
	for _, r := range text {
		raw = append(raw, byte(r))
	}
	return raw
}

func loadCase(path string) (c wireCase, err error) {
	data, err := os.ReadFile(path)
	if err == nil {
		err = json.Unmarshal(data, &c)
	}
	return c, err
}

// caseServer plays the server of the case that is its first argument. How much
// has arrived so far is told by the sizes of files in the folder that is the
// second.
var caseServer = role("case-server", func() int {
	c, err := loadCase(os.Args[1])
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 98
	}
	if c.ServerWaits == nil || *c.ServerWaits {
		need := 0
		for _, m := range c.Client {
			need += len(m)
		}
		_, _ = io.CopyN(io.Discard, os.Stdin, int64(need))
	}
	for _, step := range c.Server {
		if !arrived(step, os.Args[2]) {
			return 97
		}
		time.Sleep(time.Duration(step.SleepMS) * time.Millisecond)
		for range max(step.Times, 1) {
			_, _ = os.Stdout.Write(step.Out)
		}
		_, _ = os.Stderr.Write(step.Err)
		if step.ReadToEOF {
			_, _ = io.Copy(io.Discard, os.Stdin)
		}
		gap := 5
		if step.GapMS != nil {
			gap = *step.GapMS
		}
		time.Sleep(time.Duration(gap) * time.Millisecond) // part of the case
	}
	return c.Exit
})

// arrived waits for what a step asks for.
func arrived(step wireStep, dir string) bool {
	for limit := time.Now().Add(30 * time.Second); time.Now().Before(limit); time.Sleep(5 * time.Millisecond) {
		if hasGrown(filepath.Join(dir, "wire"), step.WaitWire) && hasGrown(filepath.Join(dir, "stray"), step.WaitStray) {
			return true
		}
	}
	return false
}

func hasGrown(path string, size int) bool {
	if size == 0 {
		return true
	}
	st, err := os.Stat(path)
	return err == nil && st.Size() >= int64(size)
}

func TestWireCases(t *testing.T) {
	paths, err := filepath.Glob(filepath.Join(moduleRoot, "test", "cases", "*.json"))
	if err != nil || len(paths) == 0 {
		t.Fatalf("no cases: %v", err)
	}
	for _, path := range paths {
		name := strings.TrimSuffix(filepath.Base(path), ".json")
		for _, mode := range []string{"auto", "stdio"} {
			t.Run(name+"/"+mode, func(t *testing.T) {
				t.Parallel()
				playCase(t, path, mode)
			})
		}
	}
}

func playCase(t *testing.T, path, mode string) {
	c, err := loadCase(path)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	stray := filepath.Join(dir, "stray")
	tell, err := os.Create(filepath.Join(dir, "wire"))
	if err != nil {
		t.Fatal(err)
	}
	defer tell.Close()
	s := start(t, Options{
		Flags: append(c.Flags, "--wire="+mode, "--stray=file:"+stray),
		Role:  caseServer, RoleArgs: []string{path, dir},
	})
	for _, m := range c.Client {
		if s.send(string(m)) != nil {
			break // a server that does not read
		}
	}
	if c.HoldStdin != nil && !*c.HoldStdin {
		s.CloseStdin()
	}
	wire := bytes.Repeat(c.Wire, max(c.WireTimes, 1))
	var got []byte
	for len(got) < len(wire) {
		more := s.take("the wire", func(p []byte, ended bool) (int, bool) { return len(p), len(p) > 0 || ended })
		if more == "" {
			break
		}
		got = append(got, more...)
		if err := tell.Truncate(int64(len(got))); err != nil {
			t.Fatal(err)
		}
	}
	got = append(got, s.Rest()...)
	s.ExpectExit(Status{Code: c.Exit})
	same(t, "the wire", got, wire)
	if c.Stray != nil {
		text, _ := os.ReadFile(stray)
		same(t, "the stray file", text, *c.Stray)
	}
	for _, want := range c.StderrHas {
		if !strings.Contains(s.Stderr(), string(want)) {
			t.Errorf("standard error lacks %q", want)
		}
	}
	for _, not := range c.StderrLacks {
		if strings.Contains(s.Stderr(), string(not)) {
			t.Errorf("standard error has %q", not)
		}
	}
}

// same compares long byte strings and shows where they differ.
func same(t *testing.T, what string, got, want []byte) {
	t.Helper()
	if bytes.Equal(got, want) {
		return
	}
	at := 0
	for at < min(len(got), len(want)) && got[at] == want[at] {
		at++
	}
	show := func(p []byte) []byte { return p[max(at-20, 0):min(at+60, len(p))] }
	t.Errorf("%s differs at byte %d: got %d bytes ...%q, want %d bytes ...%q", what, at, len(got), show(got), len(want), show(want))
}
