package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os/exec"
	"strings"
	"syscall"

	"github.com/wireguardrun/wireguardrun/guard"
	"github.com/wireguardrun/wireguardrun/internal/proc"
)

// Exit codes of our own. Any of them can also be the server's; stderr then
// has no error of ours.
const (
	exitFailure       = 125 // we failed, or were used wrongly
	exitNotExecutable = 126 // the command is there and cannot be executed
	exitNotFound      = 127 // there is no such command
	exitSignal        = 128 // plus the signal's number, where we cannot die of it ourselves
)

// Errors of Windows when a file is no program that can be started. Unix systems
// have no errors with these numbers.
const (
	errBadExeFormat      = syscall.Errno(193)
	errMachineMismatch   = syscall.Errno(216)
	errElevationRequired = syscall.Errno(740)
)

// exitCode is the exit code for an error of ours: 0 without one, what the error
// itself says (ExitCode), else 125.
func exitCode(err error) int {
	if err == nil {
		return 0
	}
	var coded interface{ ExitCode() int }
	if errors.As(err, &coded) {
		return coded.ExitCode()
	}
	return exitFailure
}

// childExitCode is the exit code that stands for a child that has ended: its
// own, all 32 bits of it on Windows, or 128 + signal if a signal ended it.
// signal is 0 if none did.
func childExitCode(code, signal int) int {
	if signal > 0 {
		return exitSignal + signal
	}
	return code
}

// launchError says why a command could not be started.
type launchError struct {
	text string
	code int
	err  error
}

func (e *launchError) Error() string { return e.text }
func (e *launchError) Unwrap() error { return e.err }
func (e *launchError) ExitCode() int { return e.code }

// launchFailure turns the error of a look-up or a start into one for people,
// with the exit code that shells use; nil stays nil. name is the command as it
// was given, file the path it was resolved to ("" if it was not), searched the
// value of PATH.
func launchFailure(name, file, searched string, err error) error {
	if err == nil {
		return nil
	}
	var at *fs.PathError
	cause := err
	if errors.As(err, &at) {
		cause = at.Err
	}
	where := file
	switch {
	case where != "":
	case at != nil:
		where = at.Path
	default:
		where = name
	}
	// Names stand in plain quotes: %q would double the backslashes of Windows,
	// and say shows what cannot be printed.
	fail := func(code int, hint, format string, args ...any) error {
		return withHint(&launchError{text: fmt.Sprintf(format, args...), code: code, err: err}, hint)
	}

	missing := errors.Is(cause, fs.ErrNotExist) || errors.Is(cause, syscall.ENOTDIR) ||
		errors.Is(cause, proc.ErrNotFound)
	switch {
	case at != nil && at.Op == "chdir":
		return fail(exitFailure, "check --cwd, or WIREGUARDRUN_CWD", `cannot enter the directory "%s": %v`, at.Path, cause)

	case missing && file != "":
		// The file was found a moment ago, so what is missing is a file that it needs.
		return fail(exitNotExecutable, "is the interpreter of its first line (#!), or its loader, installed? With CR LF at the end of that line its name is wrong",
			`cannot execute "%s": a file that it needs is missing: %v`, file, cause)

	case missing && strings.ContainsAny(name, " \t"):
		return fail(exitNotFound, "give the command and each argument as a word of its own",
			`cannot find a program called "%s", which has spaces in its name`, name)

	case missing && isPath(name):
		return fail(exitNotFound, "a relative path starts at the directory of wireguardrun, or of --cwd",
			`cannot find the program "%s": %v`, name, cause)

	case missing && searched == "":
		return fail(exitNotFound, "PATH is empty or not set: set it, or give the full path of the program",
			`cannot find "%s" in PATH=`, name)

	case missing:
		return fail(exitNotFound, "install it, or give its full path; a client started from a desktop often has a short PATH",
			`cannot find "%s" in PATH=%s`, name, searched)

	case errors.Is(cause, syscall.EAGAIN), errors.Is(cause, syscall.ENOMEM),
		errors.Is(cause, syscall.EMFILE), errors.Is(cause, syscall.ENFILE), errors.Is(cause, syscall.EBADF):
		// Said of the system or of us, not of the file. EBADF: the limit is
		// below a number that the server is to get.
		return fail(exitFailure, "a limit on processes, memory or open files is reached", `cannot start "%s": %v`, name, cause)

	case errors.Is(cause, exec.ErrDot):
		return fail(exitNotExecutable, "to run it all the same, give its path", `"%s" was found only in the current directory, through PATH`, name)

	case errors.Is(cause, syscall.ENOEXEC), errors.Is(cause, errBadExeFormat), errors.Is(cause, errMachineMismatch):
		return fail(exitNotExecutable, "a script needs a #! line; a program must be made for this system and processor",
			`cannot execute "%s": %v`, where, cause)

	case errors.Is(cause, errElevationRequired):
		return fail(exitNotExecutable, "start the client with those rights", `cannot execute "%s": %v`, where, cause)

	case errors.Is(cause, syscall.EISDIR):
		return fail(exitNotExecutable, "name a program in it", `cannot execute "%s": it is a directory`, where)

	case errors.Is(cause, syscall.E2BIG):
		return fail(exitNotExecutable, "the arguments and the environment together are more than the system takes",
			`cannot execute "%s": %v`, where, cause)

	case errors.Is(cause, fs.ErrPermission):
		return fail(exitNotExecutable, "is it a program, and may this user execute it?",
			`cannot execute "%s": %v`, where, cause)
	}
	return fail(exitNotExecutable, "", `cannot execute "%s": %v`, where, cause)
}

// wireFailure turns an error of the wire into one for people: they know the
// stream, and the system's reason.
func wireFailure(err error) error {
	what, hint := "cannot read standard input", "the server needs one that can be read"
	var step *guard.StepError
	if errors.As(err, &step) && step.Stream == guard.Out {
		what, hint = "cannot write to standard output", "the server needs one that can be written to"
	}
	if errors.Is(err, syscall.ENOSPC) {
		hint = "make room on the disk that it is redirected to"
	}
	var reason syscall.Errno
	if errors.As(err, &reason) {
		err = reason
	}
	return withHint(fmt.Errorf("%s, so the server is ended: %w", what, err), hint)
}

// fileFailure says that the file of a flag can't be opened.
func fileFailure(flag string, err error) error {
	hint := "give the path of a regular file that you may write, or of a new one"
	if errors.Is(err, fs.ErrNotExist) {
		hint = "create its directory first"
	}
	return withHint(fmt.Errorf("%s: %w", flag, err), hint)
}

// isPath tells a path from a name that is looked up in PATH.
func isPath(name string) bool { return strings.ContainsAny(name, `/\`) }
