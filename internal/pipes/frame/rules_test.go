package frame

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode/utf8"
)

const (
	reply1 = `{"jsonrpc":"2.0","id":1,"result":{}}`
	reply2 = `{"jsonrpc":"2.0","id":2,"result":{}}`
)

// talk is a scanner and what it gave, with a clock.
type talk struct {
	t    *testing.T
	conv *Conversation
	s    *Scanner
	k    sink
	now  time.Time
}

func newTalk(t *testing.T, o Options, said ...string) *talk {
	k := &talk{t: t, conv: NewConversation(o), now: epoch}
	for _, c := range said {
		k.conv.Inbound([]byte(c))
	}
	k.s = NewScanner(o, k.conv, k.k.output())
	return k
}

func ask(ids ...int) string {
	var b strings.Builder
	for _, id := range ids {
		fmt.Fprintf(&b, `{"jsonrpc":"2.0","id":%d,"method":"ping"}`+"\n", id)
	}
	return b.String()
}

func (k *talk) write(s string) { k.s.Write([]byte(s), k.now) }

func (k *talk) later(d time.Duration) {
	pass(k.s, k.now, k.now.Add(d))
	k.now = k.now.Add(d)
}

func (k *talk) want(wire, stray string) {
	k.t.Helper()
	same(k.t, "wire", k.k.wire, []byte(wire))
	same(k.t, "stray", k.k.stray, []byte(stray))
}

func TestFrameWithoutLF(t *testing.T) {
	k := newTalk(t, allOptions[0], ask(1, 2))
	k.write(reply1)
	k.want("", "")
	k.later(cleanWait - 1)
	k.want("", "")
	k.later(1)
	k.want(reply1+"\n", "")
	k.write("\r\n" + reply2 + "\n")
	k.want(reply1+"\n"+reply2+"\n", "")
	k.s.Close(k.now)
	balance(t, k.s, &k.k)
}

func TestFrameInsideOpenText(t *testing.T) {
	k := newTalk(t, allOptions[0], ask(1))
	k.write("{\"a\":\n" + reply1)
	k.later(cleanWait)
	k.want(reply1+"\n", "{\"a\":\n")
	k.write("\n")
	k.want(reply1+"\n", "{\"a\":\n")
}

func TestHoldEnds(t *testing.T) {
	k := newTalk(t, allOptions[0], ask(1, 2))
	k.write("x " + reply1 + "\n")
	k.want("", "x ")
	k.later(holdLong - 1)
	k.want("", "x ")
	k.later(1)
	k.want(reply1+"\n", "x ")
}

func TestHoldsGrowShortUntilACopy(t *testing.T) {
	k := newTalk(t, allOptions[0], ask(1, 2, 3, 4, 5, 6))
	reply := func(id int) string { return fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"result":{}}`, id) }
	wait := func(id int, d time.Duration) {
		t.Helper()
		k.write("x " + reply(id) + "\n")
		if got := k.s.Deadline().Sub(k.now); got != d {
			t.Errorf("reply %d is held for %v, want %v", id, got, d)
		}
		k.later(d)
	}
	wait(1, holdLong)
	wait(2, holdLong)
	wait(3, holdLong)
	wait(4, holdShort)
	// Reply 4 was held and passed; the real one shows that it was a copy.
	k.write(reply(4) + "\n")
	wait(5, holdLong)
}

func TestLoggedAfterHoldIsStray(t *testing.T) {
	k := newTalk(t, allOptions[0], ask(1))
	k.write("a " + reply1 + "\nb " + reply1 + "\n")
	k.later(time.Second)
	k.want(reply1+"\n", "a b "+reply1+"\n")
}

// TestUnreadableClient: ids are not known from an inbound byte that makes no
// sense until the client's next message; until then whatever is glued passes.
func TestUnreadableClient(t *testing.T) {
	for _, bad := range []string{"\xff\xfe\n", "oops", `{"a":1,}`, "{\"a\":1\n", "{\"a\n", "5"} {
		for _, cut := range []int{0, 1} {
			k := newTalk(t, allOptions[0], ask(1))
			for _, p := range pieces([]byte(bad), cut) {
				k.conv.Inbound(p)
			}
			k.conv.Inbound([]byte("\n\"x\"\n"))
			if k.conv.Tracking() {
				t.Errorf("after %q ids are taken for known", bad)
			}
			k.write("x " + reply2 + "\n")
			k.later(holdLong)
			k.conv.Inbound([]byte(ask(3)))
			k.write("y " + reply2 + "\n" + "z " + reply1 + "\n")
			k.later(holdLong)
			k.want(reply2+"\n"+reply1+"\n", "x y "+reply2+"\nz ")
		}
	}
	for _, bad := range []string{"Content-Length: x\r\n\r\n", "Content-Length: 2\r\n\r\n[x", "Content-Length: 9\r\n\r\n[]", "{}\n", "Content-Length: 99999999999\r\n\r\n{}", "Content-"} {
		for _, cut := range []int{0, 1} {
			c := NewConversation(Options{Framing: Headers})
			for _, p := range pieces([]byte(bad+block(ask(1))), cut) {
				c.Inbound(p)
			}
			if !c.Tracking() || !c.isOpen(hashNumber([]byte("1"))) {
				t.Errorf("the request behind %q is not seen", bad)
			}
		}
	}
}

// TestLongClientMessage: what is too long to be kept hides nothing behind it.
func TestLongClientMessage(t *testing.T) {
	o := allOptions[0]
	o.MaxFrame = 1 << 10
	c := NewConversation(o)
	for _, p := range pieces([]byte(`{"a":"`+strings.Repeat("x", 1<<16)+"\"}\n"), 1<<12) {
		c.Inbound(p)
	}
	if c.Tracking() || len(c.buf) > 0 {
		t.Errorf("%d bytes are kept of a message that is too long", len(c.buf))
	}
	c.Inbound([]byte(ask(1)))
	if !c.Tracking() || !c.isOpen(hashNumber([]byte("1"))) {
		t.Errorf("the request behind it is not seen")
	}
}

// TestCopiesInAnySpelling: a log prints what was read in a spelling of its own.
func TestCopiesInAnySpelling(t *testing.T) {
	said := `{"jsonrpc":"2.0","id":1,"method":"é😀","params":{"a":[1,{"b":null,"c":1.50}],"d":""}}`
	for _, same := range []string{
		`{"jsonrpc": "2.0", "id": 1, "method": "é😀", "params": {"a": [1, {"b": null, "c": 1.50}], "d": ""}}`,
		`{"params":{"d":"","a":[1.0,{"c":15e-1,"b":null}]},"method":"\u00e9\uD83D\uDE00","id":1,"jsonrpc":"2.0"}`,
		"{\n\t\"jsonrpc\":\"2.0\",\r\n\"id\":1,\"method\":\"é😀\",\"params\":{\"a\":[1,{\"b\":null,\"c\":1.5}],\"d\":\"\"}}",
	} {
		k := newTalk(t, allOptions[0], said)
		k.write("recv " + same + "\n")
		k.later(holdLong)
		k.want("", "recv "+same+"\n")
	}
	for _, other := range []string{
		`{"jsonrpc":"2.0","id":1,"method":"é😀","params":{"a":[1,{"b":null,"c":1.51}],"d":""}}`,
		`{"jsonrpc":"2.0","id":1,"method":"é😀","params":{"a":[{"b":null,"c":1.50},1],"d":""}}`,
		`{"jsonrpc":"2.0","id":1,"method":"é😀","params":{"a":[1,{"b":0,"c":1.50}],"d":""}}`,
		`{"jsonrpc":"2.0","id":1,"method":"é😀","params":{"a":[1,{"b":"null","c":1.50}],"d":""}}`,
		`{"jsonrpc":"2.0","id":1,"method":"é😀","params":{"a":[1],"b":null,"c":1.50,"d":""}}`,
	} {
		k := newTalk(t, allOptions[0], said)
		k.write("x " + other + "\n")
		k.later(holdLong)
		k.want(other+"\n", "x ")
	}
	// Too deep to be compared by value: the same bytes are a copy, others not.
	nested := strings.Repeat("[", 2*maxDepth) + strings.Repeat("]", 2*maxDepth)
	deep := `{"jsonrpc":"2.0","method":"m","params":` + nested + `}`
	spaced := `{"jsonrpc":"2.0","method":"m","params": ` + nested + `}`
	k := newTalk(t, allOptions[0], deep)
	k.write("x " + deep + "\nx " + spaced + "\n")
	k.later(holdLong)
	k.want(spaced+"\n", "x "+deep+"\nx ")
}

// TestStatsTellAll: what a session's account needs is counted.
func TestStatsTellAll(t *testing.T) {
	o := allOptions[0]
	o.MaxFrame = 200
	k := newTalk(t, o, ask(1, 2, 3))
	half := `{"jsonrpc":"2.0","id":9`
	k.write("\xef\xbb\xbf" + reply1 + "\r\n\nlog " + reply1 + "\nx " + reply2 + "\n{\n\"jsonrpc\":\"2.0\",\"id\":3,\"result\":[NaN,\"\xff\"]}\n")
	k.write(`{"jsonrpc":"2.0","id":1,"result":"` + strings.Repeat("m", 200) + "\"}\n" + half)
	k.s.Close(k.now)
	st := k.s.Stats()
	want := Stats{In: st.In, Frames: 3, FrameBytes: int64(len(k.k.wire)), StrayBytes: int64(len(k.k.stray)), Removed: st.Removed, Added: st.Added,
		Glued: 1, Joined: 1, Copies: 1, TooLong: 1, Half: 1}
	for _, r := range []Repair{RepairBOM, RepairCR, RepairJoined, RepairNumber, RepairUTF8} {
		want.Repairs[r] = 1
	}
	if st != want {
		t.Errorf("%+v, want %+v", st, want)
	}
	balance(t, k.s, &k.k)

	k = newTalk(t, Options{Framing: Raw})
	k.write("any\x00")
	k.s.Close(k.now)
	if st, want := k.s.Stats(), (Stats{In: 4, FrameBytes: 4}); st != want {
		t.Errorf("%+v of raw bytes, want %+v", st, want)
	}
}

func TestIdsByValue(t *testing.T) {
	for _, pair := range [][2]string{{"1", "1.0"}, {"10", "1e1"}, {"0", "-0.0"}, {"100", "1.00E+2"}, {`"a"`, `"\u0061"`}, {"0.5", "5e-1"}} {
		k := newTalk(t, allOptions[0], `{"jsonrpc":"2.0","id":`+pair[0]+`,"method":"m"}`)
		k.write(`{"jsonrpc":"2.0","id":` + pair[1] + `,"result":1}` + "\n")
		if len(k.k.kinds) != 1 || k.k.kinds[0] != Response {
			t.Errorf("%s and %s are not the same id", pair[0], pair[1])
		}
	}
	for _, pair := range [][2]string{{"1", "10"}, {"1", `"1"`}, {"1", "-1"}, {"12", "21"}, {"0.1", "1"}} {
		k := newTalk(t, allOptions[0], `{"jsonrpc":"2.0","id":`+pair[0]+`,"method":"m"}`)
		k.write(`{"jsonrpc":"2.0","id":` + pair[1] + `,"result":1}` + "\n")
		if len(k.k.kinds) != 1 || k.k.kinds[0] != Other {
			t.Errorf("%s and %s are taken for the same id", pair[0], pair[1])
		}
	}
}

func TestStrictIDs(t *testing.T) {
	k := newTalk(t, allOptions[3], ask(1))
	k.write(reply2 + "\n" + reply1 + "\n" + reply1 + "\n")
	k.want(reply1+"\n", reply2+"\n"+reply1+"\n")
}

func TestLenientServer(t *testing.T) {
	k := newTalk(t, allOptions[0], ask(1))
	k.write(`{"id":2,"result":1}` + "\n" + `x {"id":1,"result":1}` + "\n" + `{"id":1,"result":1}` + "\n")
	k.want(`{"id":1,"result":1}`+"\n", `{"id":2,"result":1}`+"\n"+`x {"id":1,"result":1}`+"\n")
}

func TestBlankLines(t *testing.T) {
	k := newTalk(t, allOptions[0], ask(1, 2))
	k.write("\n" + reply1 + "\n\r\n\n" + reply2 + "\n\nlog\n\n")
	k.s.Close(k.now)
	k.want(reply1+"\n"+reply2+"\n", "\nlog\n\n")
	if n := k.s.Stats().Repairs[RepairBlank]; n != 2 {
		t.Errorf("%d repairs, want 2", n)
	}
}

func TestHalfFrameAndTooLongAreNoted(t *testing.T) {
	k := newTalk(t, allOptions[4], ask(1))
	long := `{"jsonrpc":"2.0","id":1,"result":"` + strings.Repeat("m", 100) + `"}`
	half := `{"jsonrpc":"2.0","id":1`
	k.write(long + "\n" + half)
	k.s.Close(k.now)
	k.want("", long+"\n"+half)
	want := []Note{{Kind: NoteTooLong, Size: int64(len(long))}, {Kind: NoteHalf, Size: int64(len(half))}}
	if fmt.Sprint(k.k.notes) != fmt.Sprint(want) {
		t.Errorf("notes %v, want %v", k.k.notes, want)
	}
}

func TestLimitIsExact(t *testing.T) {
	o := allOptions[0]
	o.MaxFrame = len(reply1)
	k := newTalk(t, o, ask(1))
	k.write(reply1 + "\n")
	k.want(reply1+"\n", "")
	o.MaxFrame--
	k = newTalk(t, o, ask(1))
	k.write(reply1 + "\n")
	k.want("", reply1+"\n")
}

func TestCutOffFrameThenWholeOne(t *testing.T) {
	for _, half := range []string{`{"jsonrpc":"2.0","id":1,"resul`, `{"jsonrpc":"2.0","id":1,"result":`, `{"jsonrpc":"2.0","id":1,"result":["a`, `[`, `["x`} {
		k := newTalk(t, allOptions[0], ask(1))
		k.write(strings.Repeat(half, 3) + reply1 + "\n")
		k.s.Close(k.now)
		k.want(reply1+"\n", strings.Repeat(half, 3))
	}
}

func TestFramingOfClient(t *testing.T) {
	for in, want := range map[string]Framing{
		`{"jsonrpc":"2.0","method":"x"}`: JSONRPC, ` [{"jsonrpc":"2.0","method":"x"}]`: JSONRPC, `{"a":1}`: JSON, `[]`: JSON,
		"Content-Length: 2\r\n\r\n{}": Headers, "content-type: x\r\nContent-Length: 2\r\n\r\n{}": Headers,
		"HELO\r\n": Raw, "{x": Raw, "\x00": Raw, "Cat\n": Raw, `{"a":`: Auto, "Cont": Auto, "": Auto, "\xef\xbb\xbf{}": JSON,
	} {
		for _, cut := range []int{0, 1} {
			c := NewConversation(Options{})
			for _, p := range pieces([]byte(in), cut) {
				c.Inbound(p)
			}
			if f, decided := c.Framing(); f != want || decided != (want != Auto) {
				t.Errorf("%q, cut %d: %v, %v, want %v", in, cut, f, decided, want)
			}
		}
	}
}

func block(body string) string { return fmt.Sprintf("Content-Length: %d\r\n\r\n%s", len(body), body) }

func TestHeaders(t *testing.T) {
	good := block(reply1)
	for in, want := range map[string][2]string{
		good + "\r\n\n" + good:                     {good + good, ""},
		"warning: deprecated\r\n" + good:           {good, "warning: deprecated\r\n"},
		"Content-Length: 500\r\n\r\n<html>" + good: {good, "Content-Length: 500\r\n\r\n<html>"},
		"Content-Length: 36\r\n" + good:            {good, "Content-Length: 36\r\n"},
		"Content-Length: 20\r\n\r\n" + good:        {good, "Content-Length: 20\r\n\r\n"},
		block(`{"a":1}`) + good:                    {good, block(`{"a":1}`)},
		block(reply1+"\n") + good:                  {block(reply1+"\n") + good, ""},
		"Content-Type: a\r\n" + good:               {"Content-Type: a\r\n" + good, ""},
		"Content-Length: 38\r\nX-A: b\r\n\r\n" + `{"jsonrpc":"2.0","id":1,"result":"😀é"}`: {"Content-Length: 42\r\nX-A: b\r\n\r\n" + `{"jsonrpc":"2.0","id":1,"result":"😀é"}`, ""},
		"Content-Length: 39\r\nX-A: b\r\n\r\n" + `{"jsonrpc":"2.0","id":1,"result":"😀é"}`: {"Content-Length: 42\r\nX-A: b\r\n\r\n" + `{"jsonrpc":"2.0","id":1,"result":"😀é"}`, ""},
		"Content-Length: 36\r\n\r\n" + `{"jsonrpc":"2.0","id":1,"result":"` + good:        {good, "Content-Length: 36\r\n\r\n" + `{"jsonrpc":"2.0","id":1,"result":"`},
		"\xef\xbb\xbf" + good: {good, ""},
	} {
		for _, cut := range []int{0, 1, 5} {
			k := newTalk(t, Options{Repair: true}, block(`{"jsonrpc":"2.0","id":1,"method":"x"}`))
			for _, p := range pieces([]byte(in), cut) {
				k.s.Write(p, k.now)
			}
			k.s.Close(k.now)
			if cut == 0 || !t.Failed() {
				k.want(want[0], want[1])
			}
			balance(t, k.s, &k.k)
		}
	}
}

// TestLengthCutsCharacter: a length that ends within a character, or an escape,
// is none.
func TestLengthCutsCharacter(t *testing.T) {
	for _, end := range []string{`é`, `😀`, `\u00e9`, "\xe2\x82"} {
		body := `{"jsonrpc":"2.0","id":1,"result":"` + end + `"}`
		for length := len(body) - len(end) - 2; length < len(body); length++ {
			for _, repair := range []bool{false, true} {
				if n := utf8.RuneCountInString(body); repair && (length == n || length == n+1 && end == "😀" || end == "\xe2\x82") {
					continue
				}
				in := fmt.Sprintf("Content-Length: %d\r\n\r\n%s", length, body)
				k := newTalk(t, Options{Framing: Headers, Repair: repair})
				k.write(in + block(reply2))
				k.want(block(reply2), in)
			}
		}
	}
}

// TestNoiseAtOnce: what can't begin a frame is not kept until more comes.
func TestNoiseAtOnce(t *testing.T) {
	for in, held := range map[string]string{
		"Loading 10%": "", "\r 50%": "", "{x": "", "{\"abc\n": "", "[INFO": "", "[1, 2": "", "[ok] {}": "", "{\"a\":1}": "", "{\"a\":tru\n": "",
		"{\"a\":01": "", "[{}": "{}", "[\"a\",": "", "x {": "{", "x {\n": "{\n", "[1, {": "{", "[1, ": "", "[1,\n ": " ", "{\"a\":\"\x01": "", "C": "", "x [[1], [": "[1], [",
		`{"a":{"jsonrpc":"2.0","id":1,"result":{}}}`: "", "log\n": "", "\xef\xbb\xbfx": "", "{\"a\" 1": "", "{\"a\":\"\\x": "",
	} {
		k := newTalk(t, allOptions[0], ask(1))
		k.write(in)
		if got, want := string(k.k.stray), strings.TrimSuffix(in, held); got != want {
			t.Errorf("of %q only %q is passed on, want %q", in, got, want)
		}
	}
	for _, in := range []string{"Content-Length: x", "Content-Length: 99999999999\r\n", "warn: x", "Cat", "Content-Length: 50\r\n\r\ny", "Content-Length: 50\r\n\r\n{}x", "Content-Length: 3\r\n\r\n{\"a", "Content-Length: 50\r\n\r\n[1"} {
		k := newTalk(t, Options{Framing: Headers, Repair: true})
		k.write(in)
		if got := string(k.k.stray); got != in {
			t.Errorf("of %q only %q is passed on", in, got)
		}
	}
}

// TestMemory: a server that prints without end leaves nothing behind.
func TestMemory(t *testing.T) {
	for name, p := range hard(1 << 16) {
		for _, o := range []Options{{Framing: JSONRPC, Repair: true, Glued: true, MaxFrame: 1 << 20}, {Framing: Headers, Repair: true, MaxFrame: 1 << 20}} {
			s := NewScanner(o, NewConversation(o), Output{})
			for range 40 {
				s.Write(bytes.TrimSpace(p), epoch)
			}
			if n := cap(s.buf); n > 4<<20 {
				t.Errorf("%s, %v: %d bytes are kept of a limit of %d", name, o.Framing, n, o.MaxFrame)
			}
			if s.queued > 2<<20 || len(s.queue) > holdItems+1 {
				t.Errorf("%s: %d bytes wait", name, s.queued)
			}
		}
	}
}

func TestNoAllocation(t *testing.T) {
	for _, o := range []Options{allOptions[0], allOptions[6]} {
		p := []byte(reply1 + "\n")
		if o.Framing == Headers {
			p = []byte(block(reply1))
		}
		s := NewScanner(o, NewConversation(o), Output{})
		if n := testing.AllocsPerRun(1000, func() { s.Write(p, epoch) }); n > 0 {
			t.Errorf("%v: %v allocations per frame", o.Framing, n)
		}
	}
}

func TestBeforeTheClientSpeaks(t *testing.T) {
	k := newTalk(t, Options{Repair: true, Glued: true})
	event := `{"jsonrpc":"2.0","method":"up"}`
	in := "log\n" + event + "\nwarn" + block(event) + "{\n"
	k.write(in)
	k.want(event+"\n"+block(event), "log\nwarn")
	// What was held is looked at again by the rules that hold now.
	k.conv.Inbound([]byte(block(`{"jsonrpc":"2.0","id":1,"method":"x"}`)))
	k.s.Tick(k.now)
	k.want(event+"\n"+block(event), "log\nwarn{\n")
	k.write(event + "\n" + block(reply1))
	k.want(event+"\n"+block(event)+block(reply1), "log\nwarn{\n"+event+"\n")
	k.s.Close(k.now)
	balance(t, k.s, &k.k)
}

func TestHeaderInCutOffString(t *testing.T) {
	for _, noise := range []string{`{"`, `["a`, `x {"a":"`, `[1,"`} {
		k := newTalk(t, Options{Repair: true, Glued: true})
		k.write(noise + block(reply1))
		k.want(block(reply1), noise)
	}
}

// TestDecidedWithinHopelessText: the line that is looked at again begins where
// the text before it was given up.
func TestDecidedWithinHopelessText(t *testing.T) {
	k := newTalk(t, Options{Repair: true, Glued: true})
	k.write("x [1, 2\n,\n{\"ok\"")
	k.conv.Inbound([]byte(`{"a":1}`))
	k.write(":1}\n")
	k.want("{\"ok\":1}\n", "x [1, 2\n,\n")
}

func TestUnknownProtocolIsNotedOnce(t *testing.T) {
	k := newTalk(t, Options{Repair: true, Glued: true})
	k.write("{ held")
	k.write("{")
	k.conv.Inbound([]byte("HELO\r\n"))
	k.write("a\x00")
	k.write("b")
	k.s.Close(k.now)
	k.want("{a\x00b", "{ held")
	if len(k.k.notes) != 1 || k.k.notes[0].Kind != NoteUnknownProtocol {
		t.Errorf("notes %v", k.k.notes)
	}
	balance(t, k.s, &k.k)
}

func TestDebugAdapterIsAnswered(t *testing.T) {
	k := newTalk(t, Options{Repair: true}, block(`{"seq":1,"type":"request","command":"initialize"}`))
	k.write(block(`{"seq":1,"type":"event","event":"output"}`) + block(reply1) + block(`{"seq":2,"type":"response","request_seq":1.0,"success":true}`))
	if !slices.Equal(k.k.kinds, []FrameKind{Other, Response}) {
		t.Errorf("kinds %v of %q", k.k.kinds, k.k.frames)
	}
}

// A first message longer than the limit tells the protocol all the same.
func TestFirstMessageTooLong(t *testing.T) {
	c := NewConversation(Options{MaxFrame: 100})
	c.Inbound([]byte(`{"jsonrpc":"2.0","id":1,"method":"` + strings.Repeat("x", 100+maxHeader)))
	if f, known := c.Framing(); !known || f != JSONRPC || c.Tracking() {
		t.Errorf("framing %v, known %v, tracking %v", f, known, c.Tracking())
	}
	c.Inbound([]byte("\"}\n{\"jsonrpc\":\"2.0\",\"id\":2,\"method\":\"m\"}\n"))
	if !c.Tracking() {
		t.Error("ids are not followed again")
	}
}
