package guard

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/wireguardrun/wireguardrun/internal/pipes"
)

// A life of a claim: claim, use, a second claim, release, release again, a
// later claim. The child lives it with its real descriptors while some
// operations go wrong, and reports what it saw.

type lifeInput struct {
	Plan   plan
	Faults []fault
}

type lifeReport struct {
	Trace    []string // every operation up to the release
	State    [2]State
	Errors   string    // of the claim
	Claimed  [2]string // where 0 and 1 are during the claim: "wire", "diverted" or "closed"
	Second   string    // error of a second claim
	Releases []string  // errors of each Release, until the first without
	Stuck    [2]State  // after the first Release
	StuckAt  [2]string // where 0 and 1 are after the first Release
	Released [2]string // where 0 and 1 are after the last
	Later    string    // error of a later claim
	Extra    int       // open descriptors at the end minus those at the start
}

func init() { roles["life"] = life }

func life(input []byte) any {
	var in lifeInput
	if err := json.Unmarshal(input, &in); err != nil {
		return err.Error()
	}
	f := &faulty{real: realSystem(), closeStandard: closeStandard, faults: in.Faults}
	if in.Plan.NoKcmp {
		f.real.compare = compareFiles
	}
	r := &registry{sys: f.system()}
	var probes [2]handle
	for s := range probes {
		probes[s], _ = pipes.Duplicate(f.real.standard(Stream(s)))
	}
	where := func() (at [2]string) {
		for s, probe := range probes {
			switch f.real.compare(Stream(s), probe) {
			case pipes.Same, pipes.Alike:
				at[s] = "wire"
			case pipes.Closed:
				at[s] = "closed"
			default:
				at[s] = "diverted"
			}
		}
		return at
	}
	openHandles() // opens what the runtime keeps
	before := openHandles()

	var report lifeReport
	w, err := r.claim(in.Plan.config())
	if err != nil {
		return lifeReport{Errors: err.Error()}
	}
	report.State = [2]State{w.State().In, w.State().Out}
	report.Errors = errorText(w.Err())
	report.Claimed = where()
	echoClaimed(w)
	fmt.Println("stray print")
	_, err = r.claim(newConfig(nil))
	report.Second = errorText(err)
	for range 5 {
		err := w.Release()
		if len(report.Releases) == 0 {
			report.Stuck = [2]State{w.State().In, w.State().Out}
			report.StuckAt = where()
			if report.Stuck != [2]State{} {
				echoClaimed(w) // still served
			}
		}
		report.Releases = append(report.Releases, errorText(err))
		if err == nil {
			break
		}
	}
	report.Released = where()
	report.Trace = slices.Clone(f.trace)
	f.faults = nil
	later, err := r.claim(newConfig(nil))
	report.Later = errorText(err)
	if err == nil {
		echo(later)
		_ = later.Release()
	}
	report.Extra = openHandles() - before
	return report
}

// compareFiles is compare as it is on systems without kcmp.
func compareFiles(s Stream, h handle) pipes.Verdict {
	v := realSystem().compare(s, h)
	if id, err := pipes.Identify(h); (v == pipes.Same || v == pipes.Different) && err == nil && id.Is(pipes.Standard(int(s))) {
		return pipes.Alike
	}
	return v
}

func hasKcmp() bool {
	stderr := pipes.Standard(2)
	return pipes.Compare(stderr, stderr) == pipes.Same
}

// echoClaimed is echo on w, or on a standard stream where w has no claim.
func echoClaimed(w *Wire) {
	both := struct {
		io.Reader
		io.Writer
	}{os.Stdin, os.Stdout}
	if w.ends[In] != nil {
		both.Reader = w
	}
	if w.ends[Out] != nil {
		both.Writer = w
	}
	echo(both)
}

// echo reads one line, byte by byte so that none of the next is taken, and
// writes it back with a mark.
func echo(wire io.ReadWriter) {
	var line []byte
	for b := make([]byte, 1); ; {
		n, err := wire.Read(b)
		if n == 0 || err != nil {
			return
		}
		if line = append(line, b[0]); b[0] == '\n' {
			break
		}
	}
	_, _ = wire.Write(append([]byte("echo "), line...))
}

// live runs one life of both directions; see livePlan.
func live(t *testing.T, faults ...fault) lifeReport {
	t.Helper()
	return livePlan(t, plans()[0], faults)
}

// livePlan runs one life and checks what must hold whatever went wrong.
func livePlan(t *testing.T, p plan, faults []fault) lifeReport {
	t.Helper()
	c := newChild(t, "life", lifeInput{p, faults})
	stdin, err := c.cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	stdout, err := c.cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	c.cmd.Stderr = nil // where the stray print goes
	c.start()
	if _, err := io.WriteString(stdin, "one\ntwo\nthree\n"); err != nil {
		t.Fatal(err)
	}
	wire, err := io.ReadAll(bufio.NewReader(stdout))
	if err != nil {
		t.Fatal(err)
	}
	var r lifeReport
	c.wait(&r)

	claimed := p.config().only
	want := "echo one\n"
	if r.State[Out] == InPlace || !claimed[Out] {
		want += "stray print\n" // unprotected, but the wire
	}
	// What a release has given back can't be used by the Wire any more.
	reads := !claimed[In] || r.Stuck[In] == Stuck
	writes := !claimed[Out] || r.Stuck[Out] == Stuck
	switch stuck := r.Stuck != [2]State{}; {
	case stuck && reads && writes:
		want += "echo two\necho three\n"
	case stuck && reads:
		want += "echo three\n" // two was read, and the way back had ended
	default:
		want += "echo two\n"
	}
	if string(wire) != want {
		t.Errorf("the wire carried %q, want %q", wire, want)
	}
	for s, at := range r.Claimed {
		want := "diverted"
		if r.State[s] == InPlace || !claimed[s] {
			want = "wire"
		}
		if at != want {
			t.Errorf("%s is %s, with descriptor %d %s, want %s", Stream(s), r.State[s], s, at, want)
		}
	}
	for s, at := range r.StuckAt {
		want := "diverted"
		if r.Stuck[s] == Free {
			want = "wire"
		}
		if at != want {
			t.Errorf("after the first release %s is %s, with descriptor %d %s, want %s", Stream(s), r.Stuck[s], s, at, want)
		}
	}
	if !strings.Contains(r.Second, ErrClaimed.Error()) {
		t.Errorf("a second claim gave %q, want %q", r.Second, ErrClaimed)
	}
	if last := r.Releases[len(r.Releases)-1]; last != "" {
		t.Errorf("release never succeeded: %q", r.Releases)
	}
	if r.Released != [2]string{"wire", "wire"} {
		t.Errorf("after release, 0 and 1 are %q", r.Released)
	}
	if r.Later != "" {
		t.Errorf("a later claim gave %q", r.Later)
	}
	// What the system refuses to close twice stays open, but is told. It is
	// tried once where nothing tells that it is still ours.
	errs := r.Errors + strings.Join(r.Releases, "")
	told := strings.Count(errs, ": close ")
	once := p.NoKcmp || !hasKcmp() || strings.Contains(errs, ": close lifeline: ")
	if r.Extra < 0 || r.Extra > told || r.Extra > 0 && len(faults) < 2 && !once {
		t.Errorf("%d descriptors were left open, %d told", r.Extra, told)
	}
	if t.Failed() {
		t.Logf("faults %v, operations %v, report %+v", faults, r.Trace, r)
	}
	return r
}

func TestLifeWithoutFailure(t *testing.T) {
	r := live(t)
	if want := [2]State{Diverted, Diverted}; r.State != want || r.Errors != "" {
		t.Errorf("states %v, errors %q, want %v and none", r.State, r.Errors, want)
	}
	want := "duplicate open divert close duplicate open divert close restore close restore close"
	if got := strings.Join(r.Trace, " "); got != want {
		t.Errorf("operations\n %s, want\n %s", got, want)
	}
}

// The model is enough for what follows: it has the steps of real lives.

func TestRestoresInReverseOrder(t *testing.T) {
	sys := newTable(plan{}).system()
	var order []Stream
	divert, restore := sys.divert, sys.restore
	sys.divert = func(s Stream, d handle) error { order = append(order, s); return divert(s, d) }
	sys.restore = func(s Stream, saved handle) error { order = append(order, s); return restore(s, saved) }
	w, err := (&registry{sys: sys}).claim(newConfig(nil))
	if err != nil {
		t.Fatal(err)
	}
	if err := w.Release(); err != nil {
		t.Error(err)
	}
	if want := []Stream{In, Out, Out, In}; !slices.Equal(order, want) {
		t.Errorf("diverted and restored %v, want %v", order, want)
	}
}

// Modes that can't be put back are told, and keep no claim.
func TestModesThatCantBeReinstated(t *testing.T) {
	sys := newTable(plan{}).system()
	sys.reinstate = func(fd int, _ pipes.Modes) error {
		if fd == 1 {
			return errInjected
		}
		return nil
	}
	w, err := (&registry{sys: sys}).claim(newConfig(nil))
	if err != nil {
		t.Fatal(err)
	}
	err = w.Release()
	if !errors.Is(err, errInjected) || !strings.Contains(errorText(err), "guard: descriptor 1: ") || (w.State() != Status{}) {
		t.Errorf("Release gave %v and left %v", err, w.State())
	}
	if err := w.Release(); err != nil {
		t.Errorf("a second Release gave %v", err)
	}
}

func TestLifelineThatCantBeOpened(t *testing.T) {
	table := newTable(plan{})
	sys := table.system()
	open := sys.open
	sys.open = func(what diversion) (handle, handle, error) {
		if what.kind == toLifeline {
			return none, none, errInjected
		}
		return open(what)
	}
	w, err := (&registry{sys: sys}).claim(plan{Streams: []Stream{In}, Lifeline: true}.config())
	if err != nil {
		t.Fatal(err)
	}
	if w.State().In != Diverted || table.open[0].name != "null" || !errors.Is(w.Err(), errInjected) {
		t.Errorf("in is %s, descriptor 0 is on %s, errors %v", w.State().In, table.open[0].name, w.Err())
	}
}

// Close ends reads and writes also where the claim has to be kept.
func TestCloseThatIsStuck(t *testing.T) {
	sys := newTable(plan{}).system()
	restore := sys.restore
	sys.restore = func(Stream, handle) error { return errInjected }
	r := &registry{sys: sys}
	w, err := r.claim(newConfig(nil))
	if err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); !errors.Is(err, errInjected) || (w.State() != Status{Stuck, Stuck}) {
		t.Errorf("Close gave %v and left %v", err, w.State())
	}
	if _, err := w.Read(make([]byte, 1)); !errors.Is(err, os.ErrClosed) {
		t.Errorf("read gave %v", err)
	}
	if _, err := w.Write([]byte("x")); !errors.Is(err, os.ErrClosed) {
		t.Errorf("write gave %v", err)
	}
	r.sys.restore = restore
	if err := w.Close(); err != nil || (w.State() != Status{}) {
		t.Errorf("a second Close gave %v and left %v", err, w.State())
	}
}

// A number whose close has failed may be somebody else's, who has opened the
// null device too.
func TestCloseAgainSparesAStranger(t *testing.T) {
	table := newTable(plan{NoKcmp: true, null: true})
	sys := table.system()
	c := &claim{sys: &sys, stream: In}
	stranger := table.add(&object{"null"})
	if c.closeAgain(stranger) || table.open[stranger] == nil {
		t.Error("it was closed")
	}
}

// Without kcmp too, what is still on the wire is found there and left alone.
func TestDivertThatDoesNothingWithoutKcmp(t *testing.T) {
	trace, err := modelLife(plan{Streams: []Stream{In}, NoKcmp: true}, []fault{{2, untouched}})
	if err != nil || trace[2] != "divert" || slices.Contains(trace, "restore") {
		t.Errorf("operations %v, %v", trace, err)
	}
}

// TestLivesOfRealDescriptors lives a part of what TestEveryLife enumerates: all
// lives with one failure, and a sample of those with two and three.
func TestLivesOfRealDescriptors(t *testing.T) {
	const seed1, seed2 = 2026, 3 // the same sample every time
	random := rand.New(rand.NewPCG(seed1, seed2))
	wanted := 600
	if testing.Short() {
		wanted = 60
	}
	type one struct {
		plan   plan
		faults []fault
	}
	var few, many []one
	for _, p := range withoutKcmpToo(plans()) {
		everyLife(p, func(faults []fault, _ error) {
			if len(faults) <= 1 {
				few = append(few, one{p, slices.Clone(faults)})
			} else {
				many = append(many, one{p, slices.Clone(faults)})
			}
		})
	}
	random.Shuffle(len(many), func(i, j int) { many[i], many[j] = many[j], many[i] })
	random.Shuffle(len(few), func(i, j int) { few[i], few[j] = few[j], few[i] })
	lives := append(few, many...)
	lives = lives[:min(wanted, len(lives))]
	for _, life := range lives {
		t.Run(fmt.Sprintf("%v %v", life.plan, life.faults), func(t *testing.T) {
			livePlan(t, life.plan, life.faults)
		})
	}
	t.Logf("%d lives of real descriptors", len(lives))
}

// stepOf returns the index of the nth call of op in a life with faults.
func stepOf(t *testing.T, op string, n int, faults ...fault) int {
	t.Helper()
	r := live(t, faults...)
	for i, o := range r.Trace {
		if o == op {
			if n--; n < 0 {
				return i
			}
		}
	}
	t.Fatalf("no such call of %s in %v", op, r.Trace)
	return -1
}

// TestClosingTheDiversionAndTheRollBackFail is the case of the MCP Python SDK,
// "roll forward when a failed claim cannot be rolled back": with descriptor 0
// stuck on the diversion the wire is served from the private duplicate, the
// claim is held, and the restore at the end puts 0 back on the pipe.
func TestClosingTheDiversionAndTheRollBackFail(t *testing.T) {
	closeFails := fault{stepOf(t, "close", 0), untouched}
	rollBackFails := fault{stepOf(t, "restore", 0, closeFails), untouched}
	r := live(t, closeFails, rollBackFails)
	if r.State[In] != RolledForward || r.State[Out] != Diverted {
		t.Errorf("states %v, want %v and %v", r.State, RolledForward, Diverted)
	}
	if r.Claimed[In] != "diverted" {
		t.Errorf("descriptor 0 is %s, want diverted", r.Claimed[In])
	}
	for _, step := range []string{"guard: in: close diversion: ", "guard: in: roll back: "} {
		if !strings.Contains(r.Errors, step) {
			t.Errorf("errors %q lack %q", r.Errors, step)
		}
	}
	if len(r.Releases) != 1 || r.Released[In] != "wire" {
		t.Errorf("releases %q, descriptor 0 is then %s", r.Releases, r.Released[In])
	}
}

func TestRollBackServesInPlace(t *testing.T) {
	for _, op := range []string{"duplicate", "open", "divert", "close"} {
		t.Run(op, func(t *testing.T) {
			r := live(t, fault{stepOf(t, op, 1), untouched})
			switch {
			case r.State[In] != Diverted:
				t.Errorf("in is %s", r.State[In])
			case op == "open" && r.State[Out] != Diverted:
				// Standard error could not be duplicated; null does it.
				t.Errorf("out is %s", r.State[Out])
			case op != "open" && r.State[Out] != InPlace:
				t.Errorf("out is %s", r.State[Out])
			}
			if !strings.Contains(r.Errors, "guard: out: ") {
				t.Errorf("errors %q do not name the stream", r.Errors)
			}
		})
	}
}

func TestDivertThatClosesItsTarget(t *testing.T) {
	divert := fault{stepOf(t, "divert", 0), closing}
	if r := live(t, divert); r.State[In] != InPlace {
		t.Errorf("in is %s, want rolled back", r.State[In])
	}
	rollBack := fault{stepOf(t, "restore", 0, divert), closing}
	live(t, divert, rollBack) // no hole is left, which live checks
}

func TestDivertThatWorksAndReportsFailure(t *testing.T) {
	r := live(t, fault{stepOf(t, "divert", 0), done})
	if r.State[In] != Diverted {
		t.Errorf("in is %s, want what was observed, diverted", r.State[In])
	}
}

func TestRestoreFails(t *testing.T) {
	out := fault{stepOf(t, "restore", 0), untouched}
	in := fault{stepOf(t, "restore", 1, out), untouched}
	r := live(t, out, in)
	if want := [2]State{Stuck, Stuck}; r.Stuck != want {
		t.Errorf("states after the first release %v, want %v", r.Stuck, want)
	}
	for _, s := range []string{"guard: out: restore: ", "guard: in: restore: "} {
		if !strings.Contains(r.Releases[0], s) {
			t.Errorf("release reports %q, which lacks %q", r.Releases[0], s)
		}
	}
	if len(r.Releases) != 2 {
		t.Errorf("releases %q, want the second one to succeed", r.Releases)
	}
}

func TestStepErrorUnwraps(t *testing.T) {
	err := error(&StepError{"divert", In, os.ErrPermission})
	if !errors.Is(err, os.ErrPermission) {
		t.Errorf("%v does not wrap its cause", err)
	}
}
