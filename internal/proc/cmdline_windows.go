package proc

import (
	"errors"
	"fmt"
	"path/filepath"
	"strings"

	"golang.org/x/sys/windows"
)

// commandLine returns the program to start for c and its command line: c's own
// or, for a batch file, the system's cmd.exe.
func commandLine(c Command) (program, line string, err error) {
	if !isBatch(c.Path) {
		return longPath(c.Path), windows.ComposeCommandLine(c.Args), nil
	}
	system, err := windows.GetSystemDirectory()
	if err != nil {
		return "", "", fmt.Errorf("find cmd.exe: %w", err)
	}
	line, err = batchLine(c.Path, c.Args[1:])
	return filepath.Join(system, "cmd.exe"), line, err
}

// longPath is an absolute path in the form that may be longer than MAX_PATH, if
// it is. The program sees its path in that form.
func longPath(path string) string {
	switch {
	case len(path) < windows.MAX_PATH, strings.HasPrefix(path, `\\?\`):
		return path
	case strings.HasPrefix(path, `\\`):
		return `\\?\UNC` + path[1:]
	default:
		return `\\?\` + path
	}
}

// isBatch tells whether the system would give path to cmd.exe, and not by its
// rules for arguments. The system ignores dots and spaces at the end.
func isBatch(path string) bool {
	switch strings.ToLower(filepath.Ext(strings.TrimRight(path, ". "))) {
	case ".bat", ".cmd":
		return true
	}
	return false
}

// maxBatchLine is what cmd.exe takes, in UTF-16 units. It cuts off the rest
// without a word.
const maxBatchLine = 8191

// Errors of a start that is refused rather than have an argument changed, or
// a part of it run as a command.
var (
	errBatchCharacter = errors.New("cmd.exe, which runs this script, can't take an argument with a line break or a NUL; start the program that the script starts")
	errBatchPath      = errors.New("cmd.exe can't run a script whose path has a quote, a line break or a NUL, or ends with a backslash")
	errBatchLength    = errors.New("cmd.exe, which runs this script, takes command lines of 8191 characters at most; start the program that the script starts")
)

// batchLine is the command line by which cmd.exe runs script so that every
// argument stays one argument and means nothing to cmd.exe. /d: no AutoRun
// command, which might print. /e:ON: the trick with percent signs needs
// extensions. /v:OFF: exclamation marks mean nothing.
func batchLine(script string, args []string) (string, error) {
	if strings.ContainsAny(script, "\"\r\n\x00") || strings.HasSuffix(script, `\`) {
		return "", errBatchPath
	}
	var b strings.Builder
	b.WriteString(`cmd.exe /e:ON /v:OFF /d /c "`) // cmd.exe takes the outer quotes off
	quoteForBatch(&b, script, true)
	for _, arg := range args {
		if strings.ContainsAny(arg, "\r\n\x00") {
			return "", errBatchCharacter
		}
		b.WriteByte(' ')
		quoteForBatch(&b, arg, !plainForBatch(arg))
	}
	b.WriteByte('"')
	if units, err := windows.UTF16FromString(b.String()); err != nil || len(units)-1 > maxBatchLine {
		return "", errBatchLength
	}
	return b.String(), nil
}

// plainForBatch lists what needs no quotes instead of what does: cmd.exe has
// more special characters than anybody has written down.
func plainForBatch(arg string) bool {
	if arg == "" || strings.HasSuffix(arg, `\`) {
		return false
	}
	for _, c := range []byte(arg) {
		switch {
		case 'a' <= c && c <= 'z', 'A' <= c && c <= 'Z', '0' <= c && c <= '9', c >= 0x80:
		case strings.IndexByte(`#$*+-./:?@\_`, c) >= 0:
		default:
			return false
		}
	}
	return true
}

// quoteForBatch writes arg so that cmd.exe passes it on, and so that the usual
// parser of the program that the script starts gets it back: a quote is
// doubled, and so are backslashes before one.
func quoteForBatch(b *strings.Builder, arg string, quotes bool) {
	if quotes {
		b.WriteByte('"')
	}
	backslashes := 0
	for _, c := range []byte(arg) {
		switch c {
		case '\\':
			backslashes++
		case '"':
			b.WriteString(strings.Repeat(`\`, backslashes))
			b.WriteByte('"')
			backslashes = 0
		case '%':
			// Of "%%cd:~,%" cmd.exe leaves the first sign: the rest is no
			// character of the variable cd.
			b.WriteString(`%%cd:~,`)
			backslashes = 0
		default:
			backslashes = 0
		}
		b.WriteByte(c)
	}
	if quotes {
		b.WriteString(strings.Repeat(`\`, backslashes))
		b.WriteByte('"')
	}
}
