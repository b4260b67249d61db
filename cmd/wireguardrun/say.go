package main

// The only file that writes for people.
//
//   - All of it goes to the writer that is handed in, which is stderr or stands
//     for it. Nothing here knows stdout.
//   - One message is one line, and is written by one call of Write. A hint is a
//     second line, in the same call. Line breaks, control characters and escape
//     sequences in messages and values are shown, not sent.
//   - A message says what happened, an error also what failed and on what; the
//     hint says what to do.
//   - A writer that fails is not reported: there is nobody to report it to.
//
// The text is made from zerolog's JSON by a small walk over it. zerolog's own
// ConsoleWriter decodes each event into a map, sorts it, and passes line breaks
// in the message on; it is about five times as slow, and its package-wide
// default is stdout.

import (
	"bytes"
	"errors"
	"io"
	"strconv"
	"syscall"
	"time"
	"unicode"

	"github.com/rs/zerolog"
)

// logFormat is how messages look.
type logFormat uint8

const (
	formatText logFormat = iota // for people
	formatJSON                  // zerolog's own, one object on each line
)

// hintField is the field that holds a hint. Text shows it as a line of its own.
const hintField = "hint"

// say writes messages. Making one allocates nothing that is worth a delay until
// the first message. Safe for use by several goroutines if the writer is.
type say struct {
	log  zerolog.Logger
	time bool
}

// newSay makes a say that writes to w, which stays the caller's. Level
// zerolog.Disabled writes nothing.
func newSay(w io.Writer, level zerolog.Level, format logFormat) *say {
	s := &say{time: level == zerolog.DebugLevel}
	if format == formatJSON {
		s.time = true
		s.log = zerolog.New(jsonWriter{w}).Level(level)
	} else {
		s.log = zerolog.New(textWriter{w}).Level(level)
	}
	return s
}

// at begins a message of a level: fields may be added to it, and Msg ends it.
// The result is nil, on which all of zerolog's methods do nothing, when the
// level is not written.
func (s *say) at(level zerolog.Level) *zerolog.Event {
	event := s.log.WithLevel(level)
	if event == nil || !s.time {
		return event
	}
	// UTC, since local time would read the time zone's file; not zerolog's
	// own time stamp, which has whole seconds unless a global is set.
	return event.Str(zerolog.TimestampFieldName, time.Now().UTC().Format("2006-01-02T15:04:05.000Z"))
}

func (s *say) debug() *zerolog.Event { return s.at(zerolog.DebugLevel) }
func (s *say) info() *zerolog.Event  { return s.at(zerolog.InfoLevel) }
func (s *say) warn() *zerolog.Event  { return s.at(zerolog.WarnLevel) }
func (s *say) error() *zerolog.Event { return s.at(zerolog.ErrorLevel) }

// fail says an error and its hint, if it has one.
func (s *say) fail(err error) {
	event := s.error()
	if hint := hintOf(err); hint != "" {
		event = event.Str(hintField, hint)
	}
	event.Msg(err.Error())
}

// hintError is an error with advice.
type hintError struct {
	error
	hint string
}

func (e *hintError) Unwrap() error { return e.error }

// withHint adds advice to err: one sentence that says what to do. The outermost
// hint of an error counts. An empty hint changes nothing.
func withHint(err error, hint string) error {
	if hint == "" {
		return err
	}
	return &hintError{err, hint}
}

// hintOf is the advice in err, or that for a limit which any step may meet, or "".
func hintOf(err error) string {
	var hinted *hintError
	switch {
	case errors.As(err, &hinted):
		return hinted.hint
	case errors.Is(err, syscall.EMFILE):
		return "let more files be open at once: ulimit -n"
	}
	return ""
}

// jsonWriter hides errors from zerolog, which would print them to os.Stderr.
type jsonWriter struct{ w io.Writer }

func (j jsonWriter) Write(event []byte) (int, error) {
	_, _ = j.w.Write(event)
	return len(event), nil
}

// textWriter turns events into lines: "wireguardrun: message: error  key=value".
type textWriter struct{ w io.Writer }

func (t textWriter) Write(event []byte) (int, error) {
	var stamp, message, failure, hint, fields []byte
	for key, value := range members(event) {
		switch key {
		case zerolog.LevelFieldName:
		case zerolog.TimestampFieldName:
			stamp = appendShown(nil, value)
		case zerolog.MessageFieldName:
			message = appendShown(nil, value)
		case zerolog.ErrorFieldName:
			failure = appendShown(nil, value)
		case hintField:
			hint = appendShown(nil, value)
		default:
			fields = append(fields, ' ')
			fields = appendShown(fields, key)
			fields = append(fields, '=')
			if needsQuotes(value) {
				fields = strconv.AppendQuote(fields, value)
			} else {
				fields = append(fields, value...)
			}
		}
	}

	line := make([]byte, 0, 256)
	if stamp != nil {
		line = append(append(line, stamp...), ' ')
	}
	line = append(append(line, "wireguardrun: "...), message...)
	if failure != nil {
		line = append(append(line, ": "...), failure...)
	}
	if fields != nil {
		line = append(append(line, ' '), fields...)
	}
	line = append(line, '\n')
	if hint != nil {
		line = append(append(append(line, "wireguardrun: hint: "...), hint...), '\n')
	}
	_, _ = t.w.Write(line)
	return len(event), nil
}

// members walks over an event of zerolog: one flat object whose order is kept.
// Strings are decoded; anything else is given as it is spelled.
func members(event []byte) func(yield func(key, value string) bool) {
	return func(yield func(key, value string) bool) {
		rest := bytes.TrimPrefix(event, []byte("{"))
		for len(rest) > 0 && rest[0] == '"' {
			n := spanOf(rest)
			key := decoded(rest[:n])
			rest = bytes.TrimPrefix(rest[n:], []byte(":"))
			n = spanOf(rest)
			if !yield(key, decoded(rest[:n])) {
				return
			}
			rest = bytes.TrimPrefix(rest[n:], []byte(","))
		}
	}
}

// spanOf is the length of the JSON value that text starts with.
func spanOf(text []byte) int {
	depth, inString := 0, false
	for i := 0; i < len(text); i++ {
		switch c := text[i]; {
		case inString && c == '\\':
			i++
		case c == '"':
			inString = !inString
		case inString:
		case c == '{' || c == '[':
			depth++
		case depth == 0 && (c == ',' || c == ':' || c == '}' || c == '\n'):
			return i
		case c == '}' || c == ']':
			depth--
		}
	}
	return len(text)
}

// decoded is the text of a JSON string; what is no string stays as it is. The
// escapes that zerolog writes are all escapes of Go too.
func decoded(value []byte) string {
	if text, err := strconv.Unquote(string(value)); err == nil {
		return text
	}
	return string(value)
}

// appendShown appends text with all that is not printable as an escape.
func appendShown(to []byte, text string) []byte {
	for _, r := range text {
		if unicode.IsPrint(r) {
			to = append(to, string(r)...)
			continue
		}
		quoted := strconv.QuoteRune(r)
		to = append(to, quoted[1:len(quoted)-1]...)
	}
	return to
}

// needsQuotes tells whether a value would not be seen as one word.
func needsQuotes(value string) bool {
	if value == "" {
		return true
	}
	for _, r := range value {
		if r == ' ' || r == '"' || r == '=' || !unicode.IsPrint(r) {
			return true
		}
	}
	return false
}
