// Package frame tells protocol messages from everything else that a server
// prints: bytes in; frames, stray bytes and notes out.
//
// Of frames in lines, a clean one has its line to itself, a glued one shares it
// with noise, and a joined one was printed over several lines. A copy is a message
// that the server has logged beside sending it.
//
// The package is pure. It does no I/O, starts no goroutine and asks for no
// time: whoever calls it hands in the time, asks for the next Deadline and
// comes back with Tick. One Conversation follows what the client says, one
// Scanner per descriptor takes what the server prints. A caller serializes all
// calls of a Conversation and its Scanners with one mutex.
//
// Results don't depend on how the bytes were cut into writes. Memory is bounded
// by a few times Options.MaxFrame, time by a constant times the input, whatever
// the bytes are.
package frame

import (
	"fmt"
	"time"
)

// DefaultMaxFrame is the longest frame, in bytes, that passes when
// Options.MaxFrame is zero.
const DefaultMaxFrame = 64 << 20

// Framing is a way to find the borders of messages.
type Framing uint8

const (
	// Auto lets the client's first bytes decide. Until they have, both line
	// and header frames of the server are recognised.
	Auto Framing = iota
	// JSONRPC is one JSON-RPC 2.0 message, or batch, per line.
	JSONRPC
	// JSON is any JSON object or array per line; only whole lines count.
	JSON
	// Headers is Content-Length and a body, as language servers and debug
	// adapters speak.
	Headers
	// Raw lets everything pass unread.
	Raw
)

var framingNames = [...]string{Auto: "auto", JSONRPC: "jsonrpc", JSON: "json", Headers: "headers", Raw: "raw"}

// String returns the name that ParseFraming takes.
func (f Framing) String() string {
	if int(f) < len(framingNames) {
		return framingNames[f]
	}
	return "unknown"
}

// ParseFraming returns the framing of a name: auto, jsonrpc, json, headers, raw.
func ParseFraming(name string) (Framing, error) {
	for f, n := range framingNames {
		if n == name {
			return Framing(f), nil
		}
	}
	return Auto, fmt.Errorf("unknown framing %q: use auto, jsonrpc, json, headers or raw", name)
}

// Options say what counts as a frame. The zero value is careful: no repairs,
// glued frames diverted.
type Options struct {
	Framing   Framing
	MaxFrame  int  // longest frame in bytes; 0 is DefaultMaxFrame
	Repair    bool // false: frames that need a repair are stray
	Glued     bool // false: glued and joined frames are stray
	StrictIDs bool // responses that no open request asked for are stray
}

func (o Options) withDefaults() Options {
	if o.MaxFrame <= 0 {
		o.MaxFrame = DefaultMaxFrame
	}
	return o
}

// FrameKind tells what a frame says about the server that sent it.
type FrameKind uint8

const (
	// Other is a frame that answers no open request.
	Other FrameKind = iota
	// Response is a frame that answers a request that was open.
	Response
	// RawBytes are bytes that pass unread; they need not be whole messages.
	RawBytes
)

// Output takes what a Scanner finds, in the order of the stream: frames in the
// order of frames, stray bytes in the order of stray bytes. The bytes are valid
// only during the call. No function may call back into the Scanner. A nil
// function drops what it would get.
type Output struct {
	Frame func(p []byte, kind FrameKind) // a line frame ends with its one LF
	Stray func(p []byte)
	Note  func(Note)
}

// Repair is one way in which a frame is put right.
type Repair uint8

const (
	RepairBOM       Repair = iota // byte-order mark at the start of the stream removed
	RepairCR                      // CR before the LF of a line removed
	RepairBlank                   // blank line between frames removed
	RepairJoined                  // line breaks inside a message became spaces
	RepairNumber                  // NaN, Infinity or -Infinity became null
	RepairUTF8                    // invalid UTF-8 in a string became U+FFFD
	RepairHeaderEnd               // CR CR LF or bare LF in a header became CR LF
	RepairLength                  // a length that counted characters became bytes
	repairs
)

var repairNames = [...]string{
	RepairBOM: "byte-order mark", RepairCR: "CR before LF", RepairBlank: "blank line",
	RepairJoined: "message over several lines", RepairNumber: "NaN or Infinity",
	RepairUTF8: "invalid UTF-8", RepairHeaderEnd: "header line end", RepairLength: "length in characters",
}

// Repairs is the number of kinds of repair; Stats.Repairs is indexed by kind.
const Repairs = int(repairs)

// String names the fault that the repair puts right.
func (r Repair) String() string {
	if int(r) < len(repairNames) {
		return repairNames[r]
	}
	return "unknown"
}

// NoteKind tells what a Note is about.
type NoteKind uint8

const (
	// NoteRepair is the first repair of its kind.
	NoteRepair NoteKind = iota
	// NoteTooLong is a message longer than MaxFrame that went to the
	// diversion; Size is its length in bytes, without its line end.
	NoteTooLong
	// NoteHalf is an unfinished message at the end of the stream; Size is the
	// length in bytes of what there was.
	NoteHalf
	// NoteUnknownProtocol says that the client speaks no framing that we know,
	// so that from now on everything passes raw.
	NoteUnknownProtocol
)

// Note is something that a person should be told.
type Note struct {
	Kind   NoteKind
	Repair Repair // of NoteRepair
	Size   int64  // bytes, of NoteTooLong and NoteHalf
}

// Stats counts what a Scanner did. In + Added = FrameBytes + StrayBytes +
// Removed once the stream is closed.
type Stats struct {
	In         int64 // bytes taken
	Frames     int64 // not counted where everything passes raw
	FrameBytes int64 // as passed, line ends included
	StrayBytes int64
	Removed    int64 // bytes taken out by repairs and at line ends
	Added      int64 // bytes put in by repairs and at line ends
	Glued      int64 // glued frames that passed
	Joined     int64 // joined frames that passed
	Copies     int64 // messages that were copies and became stray
	TooLong    int64 // messages longer than MaxFrame
	Half       int64 // 1 if the stream ended within a message
	Repairs    [Repairs]int64
}

const (
	cleanWait = 50 * time.Millisecond  // for the LF of a frame that is complete
	holdLong  = 250 * time.Millisecond // for a clean copy of a glued or joined frame
	holdShort = 20 * time.Millisecond  // the same, once holds have proved useless
	holdsIdle = 3                      // holds without a copy until they are short
	holdItems = 1 << 12                // frames and noise between them that are held at once
	holdNoise = 1 << 20                // stray bytes kept behind a held frame before it is let go
)
