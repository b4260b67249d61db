package frame

import "bytes"

// Conversation follows what the client says: how it frames its messages, which
// of its requests are open, and what was said lately in either direction.
// Memory is bounded: 64 Ki open ids, 64 recent messages each way of which 4 KiB
// each are kept, and of a message that comes in pieces at most MaxFrame.
//
// Ids are followed as long as every inbound byte makes sense. Once one doesn't,
// nobody can tell which requests are open, and tracking ends for good.
type Conversation struct {
	opts    Options
	framing Framing // what was asked for, or found
	decided bool
	lost    bool // inbound could not be parsed: ids are not tracked
	style   members
	buf     []byte
	m       machine
	inValue bool

	open, older map[uint64]struct{} // two generations of open ids

	inbound, outbound recents
	held              [16]uint64 // ids answered by frames that had been held
	heldKind          [16]holdKind
	heldNext          int
}

// maxOpen is how many open ids are kept: the newest maxOpen/2 at least.
const maxOpen = 1 << 16

// NewConversation returns a conversation in which nothing was said yet.
func NewConversation(o Options) *Conversation {
	c := &Conversation{opts: o.withDefaults(), framing: o.Framing, decided: o.Framing != Auto,
		open: map[uint64]struct{}{}, older: map[uint64]struct{}{}}
	return c
}

// Framing returns the framing of the session, and whether it is decided. Before
// that it is Auto.
//
// With Auto the client's first value decides. `{` or `[` mean lines, once a
// whole value parses: JSON-RPC if it is a message or batch of that protocol,
// plain JSON if not. A header that starts with Content- means headers. The
// first byte that fits none of them means raw.
func (c *Conversation) Framing() (f Framing, decided bool) { return c.framing, c.decided }

// Tracking reports whether open ids are known.
func (c *Conversation) Tracking() bool { return !c.lost && c.framing != Raw }

func (c *Conversation) decide(f Framing) { c.framing, c.decided = f, true }

// Inbound takes the next bytes of the client. They are not kept beyond the
// call, but for an unfinished message.
func (c *Conversation) Inbound(p []byte) {
	if c.lost || c.framing == Raw || len(p) == 0 {
		return
	}
	data := p
	if len(c.buf) > 0 {
		c.buf = append(c.buf, p...)
		data = c.buf
	}
	used := 0
	for used < len(data) && !c.lost {
		n := 0
		if c.framing == Headers {
			n = c.headers(data[used:])
		} else {
			n = c.values(data[used:])
		}
		if n == 0 {
			break
		}
		used += n
	}
	if c.lost || c.framing == Raw {
		c.buf = nil
		return
	}
	rest := data[used:]
	if len(rest) > c.opts.MaxFrame {
		c.lost, c.buf = true, nil
		return
	}
	switch {
	case len(rest) == 0 && cap(c.buf) > keepBuffer:
		c.buf = nil
	case used > 0 || len(c.buf) == 0:
		c.buf = append(c.buf[:0], rest...)
	}
}

// fail: inbound makes no sense. When it never did, the protocol is unknown.
func (c *Conversation) fail() {
	if !c.decided {
		c.decide(Raw)
		return
	}
	c.lost = true
}

// values takes white space or one value off the front of b, and returns how
// many bytes that were, 0 when the value is not complete. It goes by values
// rather than lines, which is the same for a client that keeps to lines.
func (c *Conversation) values(b []byte) int {
	if !c.inValue {
		i := 0
		for i < len(b) && (b[i] == ' ' || b[i] == '\t' || b[i] == '\r' || b[i] == '\n') {
			i++
		}
		if i > 0 {
			return i
		}
		if !c.inbound.ring[0].used {
			if n := mark(b); n != 0 {
				return max(n, 0)
			}
		}
		if !c.decided {
			if n := fold(b, "content-"); n != 0 {
				if n > 0 {
					c.decide(Headers)
					return c.headers(b)
				}
				return 0
			}
		}
		if b[0] != '{' && b[0] != '[' {
			c.fail()
			return 0
		}
		c.m.begin(b, 0)
		c.inValue = true
	}
	switch c.m.run(b) {
	case statMore:
		return 0
	case statBad:
		c.inValue = false
		c.fail()
		return 0
	}
	c.inValue = false
	if !c.decided {
		if c.m.rpc() {
			c.decide(JSONRPC)
		} else {
			c.decide(JSON)
		}
	}
	c.said(b[:c.m.pos], &c.m)
	return c.m.pos
}

// headers takes one message with its header off the front of b, or returns 0.
func (c *Conversation) headers(b []byte) int {
	if !c.inValue {
		i := 0
		for i < len(b) && (b[i] == '\r' || b[i] == '\n') {
			i++
		}
		if i > 0 {
			return i
		}
	}
	h := parseHeader(b, true, c.opts.MaxFrame)
	if h.status == statBad {
		c.fail()
		return 0
	}
	if h.status == statMore || h.end+h.length > len(b) {
		c.inValue = h.status == statDone
		return 0
	}
	c.inValue = false
	body := b[h.end : h.end+h.length]
	i := leadingSpace(body)
	if i == len(body) || body[i] != '{' && body[i] != '[' {
		c.fail()
		return 0
	}
	c.m.begin(body, i)
	if c.m.run(body) != statDone {
		c.fail()
		return 0
	}
	if c.style == 0 {
		c.style = c.m.all & (hasRPC | hasSeq | hasType)
	}
	c.said(body, &c.m)
	return h.end + h.length
}

// said takes one message of the client.
func (c *Conversation) said(p []byte, m *machine) {
	m.each(func(msg *message) bool {
		if id, ok := msg.asks(); ok {
			c.asked(id)
		}
		return true
	})
	c.inbound.add(p)
}

// each calls f for every message of a complete value until it returns false.
func (m *machine) each(f func(*message) bool) {
	if m.count > 0 && f(&m.first) {
		for i := range m.more {
			if !f(&m.more[i]) {
				return
			}
		}
	}
}

// asked opens an id. One that is used again is open again.
func (c *Conversation) asked(id uint64) {
	if len(c.open) >= maxOpen/2 {
		c.open, c.older = c.older, c.open
		clear(c.open)
	}
	c.open[id] = struct{}{}
}

func (c *Conversation) isOpen(id uint64) bool {
	if _, ok := c.open[id]; ok {
		return true
	}
	_, ok := c.older[id]
	return ok
}

// answered closes an id.
func (c *Conversation) answered(id uint64) {
	delete(c.open, id)
	delete(c.older, id)
}

// recents are the last messages of one direction. Short ones are kept whole,
// of long ones a hash.
type recents struct {
	ring [64]recent
	next int
}

type recent struct {
	used bool
	size int
	hash uint64
	text []byte // as much as recentText
}

const recentText = 4 << 10

func (r *recents) add(p []byte) {
	e := &r.ring[r.next]
	r.next = (r.next + 1) % len(r.ring)
	*e = recent{used: true, size: len(p), text: e.text[:0]}
	if len(p) <= recentText {
		e.text = append(e.text, p...)
	} else {
		e.hash = hashLong(p)
	}
}

// has reports whether p was said lately. White space between tokens makes no
// difference where the text was kept.
func (r *recents) has(p []byte) bool {
	for i := range r.ring {
		e := &r.ring[i]
		switch {
		case !e.used:
		case e.size > recentText:
			if e.size == len(p) && e.hash == hashLong(p) {
				return true
			}
		case sameMessage(e.text, p):
			return true
		}
	}
	return false
}

// hashLong reads eight bytes at a time.
func hashLong(p []byte) uint64 {
	h := uint64(hashStart)
	for len(p) >= 8 {
		h = (h ^ le64(p)) * hashPrime
		h ^= h >> 29
		p = p[8:]
	}
	for _, c := range p {
		h = hashByte(h, c)
	}
	return h
}

// sameMessage reports whether two valid JSON texts are the same but for white
// space between tokens.
func sameMessage(a, b []byte) bool {
	if bytes.Equal(a, b) {
		return true
	}
	i, j, in := 0, 0, false
	for {
		if !in {
			i += leadingSpace(a[i:])
			j += leadingSpace(b[j:])
		}
		if i == len(a) || j == len(b) {
			return i == len(a) && j == len(b)
		}
		c := a[i]
		if c != b[j] {
			return false
		}
		i++
		j++
		switch {
		case c == '"':
			in = !in
		case in && c == '\\' && i < len(a) && j < len(b):
			if a[i] != b[j] {
				return false
			}
			i++
			j++
		}
	}
}

func leadingSpace(b []byte) int {
	i := 0
	for i < len(b) && (b[i] == ' ' || b[i] == '\t' || b[i] == '\r' || b[i] == '\n') {
		i++
	}
	return i
}

// mark returns 3 when b starts with a byte-order mark, -1 when more bytes could
// make it one, else 0.
func mark(b []byte) int {
	const bom = "\xef\xbb\xbf"
	n := min(len(b), len(bom))
	switch {
	case string(b[:n]) != bom[:n]:
		return 0
	case n < len(bom):
		return -1
	}
	return len(bom)
}

// fold returns len(lower) when b starts with that text in any case, -1 when
// more bytes could make it so, else 0.
func fold(b []byte, lower string) int {
	for i := range len(lower) {
		if i >= len(b) {
			return -1
		}
		c := b[i]
		if c >= 'A' && c <= 'Z' {
			c |= 0x20
		}
		if c != lower[i] {
			return 0
		}
	}
	return len(lower)
}
