package frame

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math/big"
	"slices"
	"strings"
	"unicode/utf8"
)

// model is the line framing with the whole stream in hand and time standing
// still, written to be obvious: every bracket is tried as the start of a value,
// each time from scratch.
type model struct {
	o           Options
	open        map[string]bool
	inbound     []string // values
	outbound    []string
	wire, stray []byte
	queue       []modelItem
	blanks      []byte
	bom, framed bool
}

type modelItem struct {
	held  bool
	blank bool
	text  []byte
	end   int
	node  any
}

type modelValue struct {
	start, end int
	node       any
	lenient    bool
}

func newModel(o Options, client []string) *model {
	m := &model{o: o, open: map[string]bool{}, framed: true}
	for _, c := range client {
		end, node := modelParse([]byte(c), 0)
		if end < 0 {
			panic("the client of a model speaks JSON")
		}
		for _, msg := range messages(node) {
			if _, ok := msg["method"]; ok && modelID(msg["id"]) != "" {
				m.open[modelID(msg["id"])] = true
			}
		}
		m.inbound = append(m.inbound, modelValueOf([]byte(c)))
	}
	return m
}

// modelObject keeps the members in a map: the last of a key counts.
type modelObject map[string]any

type modelArray []any

// modelParse reads one value at i. It returns -1 where there is none, or no
// whole one.
func modelParse(b []byte, i int) (int, any) {
	i += leadingSpace(b[i:])
	if i >= len(b) {
		return -1, nil
	}
	for lit, v := range map[string]any{"null": nil, "true": true, "false": false, "NaN": nil, "Infinity": nil, "-Infinity": nil} {
		if bytes.HasPrefix(b[i:], []byte(lit)) {
			return i + len(lit), v
		}
	}
	switch b[i] {
	case '{':
		o := modelObject{}
		i++
		if j := i + leadingSpace(b[i:]); j < len(b) && b[j] == '}' {
			return j + 1, o
		}
		for {
			i += leadingSpace(b[i:])
			if i >= len(b) || b[i] != '"' {
				return -1, nil
			}
			var k, v any
			if i, k = modelParse(b, i); i < 0 {
				return -1, nil
			}
			i += leadingSpace(b[i:])
			if i >= len(b) || b[i] != ':' {
				return -1, nil
			}
			if i, v = modelParse(b, i+1); i < 0 {
				return -1, nil
			}
			o[k.(string)] = v
			i += leadingSpace(b[i:])
			if i < len(b) && b[i] == '}' {
				return i + 1, o
			}
			if i >= len(b) || b[i] != ',' {
				return -1, nil
			}
			i++
		}
	case '[':
		a := modelArray{}
		i++
		if j := i + leadingSpace(b[i:]); j < len(b) && b[j] == ']' {
			return j + 1, a
		}
		for {
			var v any
			if i, v = modelParse(b, i); i < 0 {
				return -1, nil
			}
			a = append(a, v)
			i += leadingSpace(b[i:])
			if i < len(b) && b[i] == ']' {
				return i + 1, a
			}
			if i >= len(b) || b[i] != ',' {
				return -1, nil
			}
			i++
		}
	case '"':
		end := skipString(b, i)
		if end > len(b) || end == i+1 || b[end-1] != '"' {
			return -1, nil
		}
		var s string
		if json.Unmarshal(bytes.ToValidUTF8(b[i:end], []byte("\ufffd")), &s) != nil {
			return -1, nil
		}
		return end, s
	}
	j := i
	for j < len(b) && strings.IndexByte("+-.eE0123456789", b[j]) >= 0 {
		j++
	}
	// The longest number that is one, followed by what may follow it.
	var n json.Number
	if j == i || b[i] == '+' || json.Unmarshal(b[i:j], &n) != nil {
		return -1, nil
	}
	return j, n
}

func messages(node any) []modelObject {
	if o, ok := node.(modelObject); ok {
		return []modelObject{o}
	}
	var out []modelObject
	if a, ok := node.(modelArray); ok {
		for _, v := range a {
			if o, ok := v.(modelObject); ok {
				out = append(out, o)
			}
		}
	}
	return out
}

func modelRPC(node any) bool {
	if a, ok := node.(modelArray); ok && len(messages(node)) < len(a) {
		return false
	}
	for _, o := range messages(node) {
		if o["jsonrpc"] != "2.0" {
			return false
		}
	}
	return len(messages(node)) > 0
}

func modelID(v any) string {
	switch v := v.(type) {
	case string:
		return "s" + v
	case json.Number:
		if _, exp, _ := strings.Cut(strings.ToLower(string(v)), "e"); len(v) > 40 || len(exp) > 4 {
			return "n" + string(v)
		}
		if r, ok := new(big.Rat).SetString(string(v)); ok {
			return "n" + r.RatString()
		}
	}
	return ""
}

func has(o modelObject, keys ...string) bool {
	for _, k := range keys {
		if _, ok := o[k]; ok {
			return true
		}
	}
	return false
}

func answer(o modelObject) string {
	if has(o, "result", "error") && !has(o, "method") {
		return modelID(o["id"])
	}
	return ""
}

// modelValueOf spells a value so that two spellings of one are the same.
func modelValueOf(p []byte) string {
	_, node := modelParse(p, 0)
	return spell(node)
}

func spell(node any) string {
	switch v := node.(type) {
	case modelObject:
		var members []string
		for k, v := range v {
			members = append(members, fmt.Sprintf("%q:%s", k, spell(v)))
		}
		slices.Sort(members)
		return fmt.Sprint("{", members, "}")
	case modelArray:
		var all []string
		for _, v := range v {
			all = append(all, spell(v))
		}
		return fmt.Sprint(all)
	case json.Number:
		return modelID(v)
	}
	return fmt.Sprintf("%#v", node)
}

func (m *model) lenient(node any) bool {
	o, ok := node.(modelObject)
	return ok && !modelRPC(node) && m.open[answer(o)]
}

// faulty reports whether a value needs a repair that is not allowed.
func (m *model) faulty(v []byte) bool { return !m.o.Repair && modelRepair(v) != string(v) }

// unasked reports whether a frame answers, and nothing that is open.
func (m *model) unasked(node any) bool {
	answers := false
	for _, o := range messages(node) {
		id := answer(o)
		if m.open[id] {
			return false
		}
		answers = answers || id != ""
	}
	return answers
}

// cleanLine reports whether the line at i is nothing but frames.
func (m *model) cleanLine(b []byte, i int) bool {
	line := b[i:]
	if k := bytes.IndexByte(line, '\n'); k >= 0 {
		line = line[:k]
	}
	n := 0
	for j := 0; ; n++ {
		j += leadingSpace(line[j:])
		if j == len(line) {
			return n > 0
		}
		if line[j] != '{' && line[j] != '[' {
			return false
		}
		end, node := modelParse(line, j)
		lenient := end >= 0 && n == 0 && m.lenient(node) && len(bytes.TrimSpace(line[end:])) == 0
		if end < 0 || m.faulty(line[j:end]) || !modelRPC(node) && !lenient {
			return false
		}
		j = end
	}
}

// run takes a whole stream.
func (m *model) run(b []byte) {
	const (
		fresh = iota
		clean
		held
		plain
	)
	last, noise, given := fresh, false, 0
	var a modelValue
	if bytes.HasPrefix(b, []byte("\xef\xbb\xbf")) {
		m.bom = true
		b = b[3:]
	}
	stray := func(end int) {
		if given < end {
			m.addStray(b[given:end], false)
			given = end
		}
	}
	pass := func(end int) {
		text := bytes.TrimSuffix(b[a.end:end], []byte("\n"))
		tail := bytes.TrimRight(text, "\r")
		if (len(tail) < len(text) || m.bom) && !m.o.Repair || m.o.StrictIDs && m.unasked(a.node) {
			stray(end)
			last = plain
			return
		}
		lead := b[given:a.start]
		m.releaseAll(a.node, b[a.start:a.end])
		if k := bytes.LastIndexByte(lead, '\r'); k >= 0 {
			m.addStray(lead[:k+1], false)
			lead = lead[k+1:]
		}
		m.frame(string(lead)+modelRepair(b[a.start:a.end])+string(tail), a.node, b[a.start:a.end])
		given, last = end, fresh
	}
	hold := func(v modelValue) {
		stray(v.start)
		if !m.o.Glued || m.faulty(b[v.start:v.end]) || !m.wanted(v.node, b[v.start:v.end]) {
			stray(v.end)
			last = plain
			return
		}
		m.queue = append(m.queue, modelItem{held: true, text: bytes.Clone(b[v.start:v.end]), end: v.end - v.start, node: v.node})
		given, last = v.end, held
	}
	glue := func() {
		if last != clean {
			return
		}
		if a.lenient {
			stray(a.end)
		} else {
			hold(a)
		}
	}
	for i := 0; i < len(b); {
		switch b[i] {
		case '\n':
			i++
			switch {
			case last == clean:
				pass(i)
			case last == held:
				q := &m.queue[len(m.queue)-1]
				q.text = append(q.text, b[given:i]...)
				given = i
			case last == fresh && !noise && len(bytes.Trim(b[given:i], "\r\n")) == 0:
				m.addStray(b[given:i], true)
				given = i
			default:
				stray(i)
			}
			last, noise = fresh, false
		case '{', '[':
			if last == held {
				stray(i) // white space behind it
				last = plain
			}
			// The text goes no further than the next clean line.
			limit := len(b)
			for j := i; j < len(b); j++ {
				if b[j] == '\n' && j+1 < len(b) && m.cleanLine(b, j+1) {
					limit = j + 1
					break
				}
			}
			end, node := modelParse(b[:limit], i)
			joined := end > 0 && bytes.IndexByte(b[i:end], '\n') >= 0
			v := modelValue{start: i, end: end, node: node}
			if end > 0 && m.faulty(b[i:end]) {
				node = nil // no message
			}
			switch {
			case end < 0:
				glue()
				i++
				stray(i)
				last, noise = plain, true
				continue
			case modelRPC(node):
				if last == clean && a.lenient {
					glue()
					last, noise = plain, true
				}
				if last == clean {
					pass(a.end)
				}
				if noise || joined {
					hold(v)
				} else {
					last, a = clean, v
				}
			case m.lenient(node) && !joined && !noise && last == fresh:
				v.lenient = true
				last, a = clean, v
			default:
				glue()
				stray(end)
				last, noise = plain, true
			}
			i = end
		case ' ', '\t', '\r':
			i++
		default:
			glue()
			i++
			stray(i)
			last, noise = plain, true
		}
	}
	switch {
	case last == clean:
		pass(len(b))
	case last == held:
		q := &m.queue[len(m.queue)-1]
		q.text = append(q.text, b[given:]...)
	case last == fresh && !noise:
		m.addStray(b[given:], true)
	default:
		stray(len(b))
	}
	m.releaseAll(nil, nil)
	m.blanks = nil
	m.flush(true)
}

func modelRepair(v []byte) string {
	var out []byte
	for i := 0; i < len(v); {
		if v[i] == '"' {
			end := skipString(v, i)
			for s := v[i:end]; len(s) > 0; {
				r, n := utf8.DecodeRune(s)
				if r == utf8.RuneError && n == 1 {
					n, _ = subpart(s)
				}
				out = utf8.AppendRune(out, r)
				s = s[n:]
			}
			i = end
			continue
		}
		out = append(out, v[i])
		i++
	}
	return modelOutside(string(out))
}

// modelOutside repairs what is outside strings.
func modelOutside(s string) string {
	var out strings.Builder
	for i := 0; i < len(s); {
		if s[i] == '"' {
			end := skipString([]byte(s), i)
			out.WriteString(s[i:end])
			i = end
			continue
		}
		end := strings.IndexByte(s[i:], '"')
		if end < 0 {
			end = len(s) - i
		}
		out.WriteString(strings.NewReplacer("-Infinity", "null", "Infinity", "null", "NaN", "null", "\r\n", " ", "\n", " ").Replace(s[i : i+end]))
		i += end
	}
	return out.String()
}

func (m *model) wanted(node any, p []byte) bool {
	for _, t := range m.inbound {
		if t == modelValueOf(p) {
			return false
		}
	}
	own := false
	for _, o := range messages(node) {
		if id := answer(o); id != "" {
			if m.open[id] {
				return true
			}
		} else if has(o, "method") {
			own = true
		}
	}
	for _, t := range m.outbound {
		if t == modelValueOf(p) {
			return false
		}
	}
	return own
}

func (m *model) addStray(p []byte, blank bool) {
	if len(p) == 0 {
		return
	}
	if len(m.queue) > 0 {
		m.queue = append(m.queue, modelItem{blank: blank, text: bytes.Clone(p)})
		return
	}
	if blank && m.framed && m.o.Repair {
		m.blanks = append(m.blanks, p...)
		return
	}
	m.flush(false)
	m.stray = append(m.stray, p...)
	m.framed = false
}

func (m *model) flush(frame bool) {
	if m.bom && (!frame || !m.o.Repair) {
		m.stray = append(m.stray, "\xef\xbb\xbf"...)
	}
	if !frame {
		m.stray = append(m.stray, m.blanks...)
	}
	m.bom, m.blanks = false, nil
}

func (m *model) frame(s string, node any, p []byte) {
	m.flush(true)
	m.wire = append(m.wire, s+"\n"...)
	m.framed = true
	own := false
	for _, o := range messages(node) {
		if id := answer(o); id != "" {
			delete(m.open, id)
		} else if has(o, "method") {
			own = true
		}
	}
	if own {
		m.outbound = append(m.outbound, modelValueOf(p))
	}
}

// releaseAll ends all holds, because of a clean frame if node is not nil.
func (m *model) releaseAll(node any, p []byte) {
	q := m.queue
	m.queue = nil
	for _, it := range q {
		if !it.held {
			m.addStray(it.text, it.blank)
			continue
		}
		copied := node != nil && modelValueOf(p) == modelValueOf(it.text[:it.end])
		for _, a := range messages(it.node) {
			for _, c := range messages(node) {
				copied = copied || answer(a) != "" && answer(a) == answer(c)
			}
		}
		if copied || !m.wanted(it.node, it.text[:it.end]) || m.bom && !m.o.Repair {
			m.addStray(it.text, false)
			continue
		}
		m.frame(modelRepair(it.text[:it.end]), it.node, it.text[:it.end])
	}
}
