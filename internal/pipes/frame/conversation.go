package frame

import "bytes"

// Conversation follows what the client says: how it frames its messages, which
// of its requests are open, and what was said lately in either direction.
// Memory is bounded: 64 Ki open ids, 64 recent messages each way of which 4 KiB
// each are kept, and of a message that comes in pieces at most MaxFrame.
//
// Ids are followed as long as every inbound byte makes sense. Once one doesn't,
// nobody can tell which requests are open, until a message of the client can be
// read again: lines go on at the next line, headers at the next Content-Length.
type Conversation struct {
	opts    Options
	framing Framing // what was asked for, or found
	decided bool
	lost    bool // what came last could not be parsed: ids are not tracked
	skip    bool // until the next place where a message may begin
	frames  int64
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

// Frames returns how many messages and batches of the client have been told
// from each other.
func (c *Conversation) Frames() int64 { return c.frames }

func (c *Conversation) decide(f Framing) { c.framing, c.decided = f, true }

// Inbound takes the next bytes of the client. They are not kept beyond the
// call, but for an unfinished message.
func (c *Conversation) Inbound(p []byte) {
	if c.framing == Raw || len(p) == 0 {
		return
	}
	data := p
	if len(c.buf) > 0 {
		c.buf = append(c.buf, p...)
		data = c.buf
	}
	used := 0
	for used < len(data) && c.framing != Raw {
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
	if c.framing == Raw {
		c.buf = nil
		return
	}
	rest := data[used:]
	if len(rest) > c.opts.MaxFrame+maxHeader {
		if c.inValue && !c.decided {
			c.decide(JSONRPC) // no other protocol begins with so much JSON
		}
		c.fail()
		c.buf = nil
		return
	}
	switch {
	case len(rest) == 0 && cap(c.buf) > keepBuffer:
		c.buf = nil
	case used > 0 || len(c.buf) == 0:
		c.buf = append(c.buf[:0], rest...)
	}
}

// fail is called where inbound makes no sense. If no value made sense before,
// the protocol is unknown, and everything passes raw.
func (c *Conversation) fail() {
	c.inValue = false
	if !c.decided {
		c.decide(Raw)
		return
	}
	c.lost, c.skip = true, true
}

// values takes white space or one value off the front of b, and returns how
// many bytes that were, 0 when the value is not complete. It goes by values
// rather than lines, which is the same for a client that keeps to lines.
func (c *Conversation) values(b []byte) int {
	if c.skip {
		k := bytes.IndexByte(b, '\n')
		if k < 0 {
			return len(b)
		}
		c.skip = false
		return k + 1
	}
	if !c.inValue {
		i := 0
		for i < len(b) && (b[i] == ' ' || b[i] == '\t' || b[i] == '\r' || b[i] == '\n') {
			i++
		}
		if i > 0 {
			return i
		}
		if !c.inbound.ring[0].used {
			if n := startsWithBOM(b); n != 0 {
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
			return 1
		}
		c.m.begin(b, 0)
		c.inValue = true
	}
	switch c.m.run(b) {
	case statMore:
		return 0
	case statBad:
		c.fail()
		if k := bytes.LastIndexByte(b[:c.m.pos], '\n'); k >= 0 {
			c.skip = false // the value was cut off: a line begins behind it
			return k + 1
		}
		return c.m.pos
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
	if c.skip {
		i := 0
		for i < len(b) && fold(b[i:], contentLength) == 0 {
			i++
		}
		c.skip = i == len(b) || len(b)-i < len(contentLength)
		if c.skip || i > 0 {
			return i
		}
	}
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
		return 1
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
		return h.end
	}
	c.m.begin(body, i)
	if c.m.run(body) != statDone || c.m.pos+leadingSpace(body[c.m.pos:]) < len(body) {
		c.fail()
		return h.end + c.m.pos
	}
	if c.style == 0 {
		c.style = c.m.all & (hasRPC | hasSeq | hasType)
	}
	c.said(body, &c.m)
	return h.end + h.length
}

// said takes one message of the client.
func (c *Conversation) said(p []byte, m *machine) {
	c.frames++
	c.lost = false
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

// Unanswered returns how many requests of the client are open: all of them, as
// long as that is no more than maxOpen/2.
func (c *Conversation) Unanswered() int64 {
	n := len(c.open)
	for id := range c.older {
		if _, again := c.open[id]; !again {
			n++
		}
	}
	return int64(n)
}

func leadingSpace(b []byte) int {
	i := 0
	for i < len(b) && (b[i] == ' ' || b[i] == '\t' || b[i] == '\r' || b[i] == '\n') {
		i++
	}
	return i
}

// bom is the byte-order mark of UTF-8.
const bom = "\xef\xbb\xbf"

// startsWithBOM returns len(bom) when b starts with it, -1 when more bytes could
// make it so, else 0.
func startsWithBOM(b []byte) int {
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
