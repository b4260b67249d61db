// Package handover is the environment contract between wireguardrun and the
// server it starts: which extra descriptors carry the wire, and how to make
// sure that the numbers still mean what they meant when they were told.
//
// Launchers between the two (npx, a shell, npm) lose or reuse descriptor
// numbers but keep the environment, and a server may start servers of its own
// with the same environment. So a record holds the identity of both ends of
// the wire and of the standard descriptors that the child was started with,
// and counts only while all four hold.
package handover

import (
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"

	"github.com/wireguardrun/wireguardrun/internal/pipes"
)

// The variables of the contract. The numbers are for scripts; libraries use
// the record, which they can check.
const (
	EnvIn     = "WIREGUARDRUN_IN"
	EnvOut    = "WIREGUARDRUN_OUT"
	EnvRecord = "WIREGUARDRUN_HANDOVER"

	version = "v1"

	firstExtra = 3 // descriptor number, after the standard ones
)

// Variables lists the names of the contract's variables.
var Variables = []string{EnvIn, EnvOut, EnvRecord}

// Mode tells what the child's 0 and 1 are.
type Mode string

const (
	// Fds: the wire is on the extra descriptors alone; 0 and 1 are the
	// diversion.
	Fds Mode = "fds"
	// Auto: the wire is on both pairs until the server shows which one it
	// uses; one LF on the extra output announces an aware server.
	Auto Mode = "auto"
)

// End is one direction of a handed-down wire, as the child sees it.
type End struct {
	Number int          // descriptor number; on Windows, of the C runtime
	Handle pipes.Handle // the same as Number on Unix, a HANDLE on Windows
	ID     pipes.Identity
}

func (e End) holds() bool { return e.ID.Is(e.Handle) }

// Record is everything that is told to the child.
type Record struct {
	Mode          Mode
	In, Out       End
	Stdin, Stdout pipes.Identity // of the child's 0 and 1 at its start
}

// ErrStale is returned for a record whose descriptors are no longer what they
// were: a process in between closed or reused the numbers, or redirected the
// standard descriptors.
var ErrStale = errors.New("the handed-down descriptors are no longer the wire")

// Environ returns the contract's variables for the child, as KEY=value.
func (r Record) Environ() []string {
	return []string{
		EnvIn + "=" + strconv.Itoa(r.In.Number),
		EnvOut + "=" + strconv.Itoa(r.Out.Number),
		EnvRecord + "=" + r.String(),
	}
}

// String encodes the record as the value of [EnvRecord].
func (r Record) String() string {
	return fmt.Sprintf("%s;mode=%s;in=%s;out=%s;stdin=%s;stdout=%s", version, r.Mode, r.In, r.Out, r.Stdin, r.Stdout)
}

// String encodes an end as NUMBER@IDENTITY, with the handle in between where
// it is another number.
func (e End) String() string {
	if e.Handle == pipes.Handle(e.Number) {
		return fmt.Sprintf("%d@%s", e.Number, e.ID)
	}
	return fmt.Sprintf("%d:%x@%s", e.Number, uintptr(e.Handle), e.ID)
}

// FromEnv reads the record that this process was started with. ok is false
// when there is none, or an empty one; an error means that there is one which
// can't be read.
func FromEnv() (r Record, ok bool, err error) {
	value := os.Getenv(EnvRecord)
	if value == "" {
		return Record{}, false, nil
	}
	r, err = Parse(value)
	if err != nil {
		return Record{}, true, fmt.Errorf("%s: %w", EnvRecord, err)
	}
	return r, true, nil
}

// Parse decodes what [Record.String] encoded. Keys it does not know are
// ignored, so that a later version may add some.
func Parse(value string) (Record, error) {
	fields := strings.Split(value, ";")
	if fields[0] != version {
		return Record{}, fmt.Errorf("version %q is not supported, only %q", fields[0], version)
	}
	values := make(map[string]string, len(fields))
	for _, f := range fields[1:] {
		k, v, found := strings.Cut(f, "=")
		if !found {
			return Record{}, fmt.Errorf("field %q is not KEY=VALUE", f)
		}
		values[k] = v
	}
	r := Record{
		Mode:   Mode(values["mode"]),
		Stdin:  pipes.Identity(values["stdin"]),
		Stdout: pipes.Identity(values["stdout"]),
	}
	if r.Mode != Fds && r.Mode != Auto {
		return Record{}, fmt.Errorf("mode %q is unknown", values["mode"])
	}
	var errIn, errOut error
	r.In, errIn = parseEnd("in", values["in"])
	r.Out, errOut = parseEnd("out", values["out"])
	if err := errors.Join(errIn, errOut); err != nil {
		return Record{}, err
	}
	if r.In.Handle == r.Out.Handle {
		return Record{}, fmt.Errorf("in and out are one descriptor, %s", values["in"])
	}
	return r, nil
}

func parseEnd(key, value string) (End, error) {
	numbers, id, found := strings.Cut(value, "@")
	if !found || id == "" {
		return End{}, fmt.Errorf("%s=%q is not NUMBER@IDENTITY", key, value)
	}
	number, handle, split := strings.Cut(numbers, ":")
	n, err := strconv.ParseUint(number, 10, 31)
	if err != nil {
		return End{}, fmt.Errorf("%s: descriptor number %q: %w", key, number, err)
	}
	if n < firstExtra {
		return End{}, fmt.Errorf("%s: descriptor number %d is that of a standard descriptor", key, n)
	}
	e := End{Number: int(n), Handle: pipes.Handle(n), ID: pipes.Identity(id)}
	if split {
		h, err := strconv.ParseUint(handle, 16, strconv.IntSize)
		if err != nil {
			return End{}, fmt.Errorf("%s: handle %q: %w", key, handle, err)
		}
		e.Handle = pipes.Handle(h)
	}
	return e, nil
}

// PairHolds reports whether both extra descriptors are still the wire.
func (r Record) PairHolds() bool { return r.In.holds() && r.Out.holds() }

// Check returns nil while the pair and the standard descriptors of this
// process are what they were when it was started, else an error that wraps
// [ErrStale] and names the first that is not.
func (r Record) Check(stdin, stdout pipes.Handle) error {
	for _, c := range []struct {
		name string
		id   pipes.Identity
		h    pipes.Handle
	}{
		{fmt.Sprintf("wire in, descriptor %d", r.In.Number), r.In.ID, r.In.Handle},
		{fmt.Sprintf("wire out, descriptor %d", r.Out.Number), r.Out.ID, r.Out.Handle},
		{"stdin, descriptor 0", r.Stdin, stdin},
		{"stdout, descriptor 1", r.Stdout, stdout},
	} {
		if !c.id.Is(c.h) {
			return fmt.Errorf("%w (%s)", ErrStale, c.name)
		}
	}
	return nil
}

// StandardReplaced reports whether neither standard descriptor of this process
// is what the record says: a server started it with pipes of its own, and the
// record is about the server's session, not this one.
func (r Record) StandardReplaced(stdin, stdout pipes.Handle) bool {
	return !r.Stdin.Is(stdin) && !r.Stdout.Is(stdout)
}

// PutOnStandard makes standard input and output the handed-down wire and closes
// the extra pair. It stops at the first failure: the wire is then still open on
// the pair. On Windows the files of package os stay on the diversion.
func (r Record) PutOnStandard() error {
	for n, end := range []End{r.In, r.Out} {
		if err := redirect(end.Handle, n); err != nil {
			return fmt.Errorf("put the wire back on standard descriptor %d: %w", n, err)
		}
	}
	return r.ClosePair()
}

// ClosePair closes the extra pair in this process.
func (r Record) ClosePair() error {
	return errors.Join(pipes.Close(r.In.Handle), pipes.Close(r.Out.Handle))
}

// Clear removes the contract's variables from the environment of this
// process, so that its children are not told of descriptors that they lack.
func Clear() {
	for _, name := range Variables {
		_ = os.Unsetenv(name)
	}
}

// Restore puts the variables back, for a successor in the same process.
func (r Record) Restore() {
	for _, kv := range r.Environ() {
		name, value, _ := strings.Cut(kv, "=")
		_ = os.Setenv(name, value)
	}
}
