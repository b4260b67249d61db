package frame

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"
)

// text is a string of bytes as the cases write it: one character is one byte,
// or a list of [text, times].
type text []byte

func (b *text) UnmarshalJSON(p []byte) error {
	var one string
	if json.Unmarshal(p, &one) == nil {
		*b = latin(one)
		return nil
	}
	var runs [][2]json.RawMessage
	if err := json.Unmarshal(p, &runs); err != nil {
		return err
	}
	*b = text{}
	for _, r := range runs {
		var n int
		if err := json.Unmarshal(r[0], &one); err != nil {
			return err
		}
		if err := json.Unmarshal(r[1], &n); err != nil {
			return err
		}
		*b = append(*b, bytes.Repeat(latin(one), n)...)
	}
	return nil
}

func latin(s string) []byte {
	out := make([]byte, 0, len(s))
	for _, r := range s {
		out = append(out, byte(r))
	}
	return out
}

type wireCase struct {
	Why       string
	Client    []text
	Server    []step
	Wire      text
	WireTimes int `json:"wire_times"`
	Stray     *text
	Flags     []string
	Exit      int
	StderrHas []string `json:"stderr_has"`
	Waits     *bool    `json:"server_waits"`
}

type step struct {
	Out       text
	Times     *int
	SleepMS   int  `json:"sleep_ms"`
	GapMS     *int `json:"gap_ms"`
	WaitWire  int  `json:"wait_wire"`
	WaitStray int  `json:"wait_stray"`
}

func loadCase(t testing.TB, path string) wireCase {
	t.Helper()
	p, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	var c wireCase
	if err := json.Unmarshal(p, &c); err != nil {
		t.Fatalf("%s: %v", path, err)
	}
	return c
}

func casePaths(t testing.TB) []string {
	t.Helper()
	paths, err := filepath.Glob("../../../test/cases/*.json")
	if err != nil || len(paths) == 0 {
		t.Fatalf("no cases: %v", err)
	}
	return paths
}

func caseOptions(t testing.TB, flags []string) Options {
	t.Helper()
	o := Options{Repair: true, Glued: true}
	for _, f := range flags {
		name, val, _ := strings.Cut(f, "=")
		var err error
		switch name {
		case "--no-repair":
			o.Repair = false
		case "--glued":
			o.Glued = val != "divert"
		case "--strict-ids":
			o.StrictIDs = true
		case "--framing":
			o.Framing, err = ParseFraming(val)
		case "--max-frame":
			unit := map[string]int{"KiB": 1 << 10, "MiB": 1 << 20}[val[len(val)-3:]]
			o.MaxFrame, err = strconv.Atoi(val[:len(val)-3])
			o.MaxFrame *= unit
		default:
			t.Fatalf("flag %q has no meaning here", f)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	return o
}

// sink collects what a Scanner gives.
type sink struct {
	wire, stray []byte
	frames      [][]byte
	kinds       []FrameKind
	notes       []Note
}

func (k *sink) output() Output {
	return Output{
		Frame: func(p []byte, kind FrameKind) {
			k.wire = append(k.wire, p...)
			k.frames = append(k.frames, bytes.Clone(p))
			k.kinds = append(k.kinds, kind)
		},
		Stray: func(p []byte) { k.stray = append(k.stray, p...) },
		Note:  func(n Note) { k.notes = append(k.notes, n) },
	}
}

var epoch = time.Unix(1_700_000_000, 0)

// pass moves the clock to the given time, stopping at every deadline.
func pass(s *Scanner, from, to time.Time) {
	for {
		d := s.Deadline()
		if d.IsZero() || d.After(to) {
			s.Tick(to)
			return
		}
		if d.Before(from) {
			d = from
		}
		s.Tick(d)
	}
}

// balance checks that no byte was lost or made up.
func balance(t testing.TB, s *Scanner, k *sink) {
	t.Helper()
	st := s.Stats()
	if st.In+st.Added != st.FrameBytes+st.StrayBytes+st.Removed {
		t.Errorf("bytes don't add up: %+v", st)
	}
	if st.FrameBytes != int64(len(k.wire)) || st.StrayBytes != int64(len(k.stray)) {
		t.Errorf("counted %d and %d bytes, got %d and %d", st.FrameBytes, st.StrayBytes, len(k.wire), len(k.stray))
	}
}

// TestCases plays every wire case against a Conversation and a Scanner with a
// clock of its own.
func TestCases(t *testing.T) {
	for _, path := range casePaths(t) {
		name := strings.TrimSuffix(filepath.Base(path), ".json")
		t.Run(name, func(t *testing.T) {
			if strings.HasPrefix(name, "X-exit") || strings.HasPrefix(name, "B26-") {
				t.Skip("about the process, not the bytes on one descriptor")
			}
			c := loadCase(t, path)
			for _, cut := range []int{0, 1, 7} {
				if cut > 0 && len(c.Wire) > 1<<20 {
					continue
				}
				play(t, c, cut)
			}
		})
	}
}

func play(t *testing.T, c wireCase, cut int) {
	t.Helper()
	o := caseOptions(t, c.Flags)
	conv := NewConversation(o)
	var k sink
	s := NewScanner(o, conv, k.output())
	for _, m := range c.Client {
		for _, p := range pieces(m, cut) {
			conv.Inbound(p)
		}
	}
	now := epoch
	wait := func(what string, got *[]byte, n int) {
		for end := now.Add(8 * time.Second); len(*got) < n; {
			d := s.Deadline()
			if d.IsZero() || d.After(end) {
				t.Fatalf("cut %d: %s stays at %d bytes, the server waits for %d: %q", cut, what, len(*got), n, *got)
			}
			pass(s, now, d)
			now = d
		}
	}
	for _, st := range c.Server {
		wait("wire", &k.wire, st.WaitWire)
		wait("stray", &k.stray, st.WaitStray)
		next := now.Add(time.Duration(st.SleepMS) * time.Millisecond)
		pass(s, now, next)
		now = next
		times := 1
		if st.Times != nil {
			times = *st.Times
		}
		for range times {
			for _, p := range pieces(st.Out, cut) {
				s.Write(p, now)
			}
		}
		gap := 5
		if st.GapMS != nil {
			gap = *st.GapMS
		}
		next = now.Add(time.Duration(gap) * time.Millisecond)
		pass(s, now, next)
		now = next
	}
	s.Close(now)
	want := bytes.Repeat(c.Wire, max(c.WireTimes, 1))
	same(t, "wire", k.wire, want)
	if c.Stray != nil {
		same(t, "stray", k.stray, *c.Stray)
	}
	balance(t, s, &k)
	if t.Failed() {
		t.Fatalf("cut %d", cut)
	}
}

func pieces(p []byte, n int) [][]byte {
	if n <= 0 || len(p) == 0 {
		return [][]byte{p}
	}
	var out [][]byte
	for len(p) > n {
		out = append(out, p[:n])
		p = p[n:]
	}
	return append(out, p)
}

func same(t testing.TB, what string, got, want []byte) {
	t.Helper()
	if bytes.Equal(got, want) {
		return
	}
	i := 0
	for i < min(len(got), len(want)) && got[i] == want[i] {
		i++
	}
	show := func(b []byte) []byte { return b[max(0, min(i-40, len(b))):min(len(b), i+80)] }
	t.Errorf("%s differs at byte %d: got %d bytes …%q, want %d bytes …%q", what, i, len(got), show(got), len(want), show(want))
}
