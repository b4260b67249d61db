// Package client watches for the end of the client, the process at the other
// end of the wire: a client that dies must not leave its server behind, and
// one that lives must not lose it.
package client

import (
	"os"
	"time"

	"github.com/wireguardrun/wireguardrun/internal/pipes"
)

// Sign is something that was seen of the client.
type Sign uint8

const (
	// InputEnded: the client has closed its writing side, which is how a
	// session ends in peace, or begins where all requests were written in
	// advance. It says nothing about the client's life.
	InputEnded Sign = iota + 1
	// NoReader: nobody is left who could read what the server writes.
	NoReader
	// ParentGone: the process that started us, and that is the client, has
	// ended.
	ParentGone
)

func (s Sign) String() string {
	switch s {
	case InputEnded:
		return "the client has ended its output"
	case NoReader:
		return "nobody reads the wire any more"
	case ParentGone:
		return "the client's process has ended"
	default:
		return "no sign"
	}
}

// The times of the rules.
const (
	// silence is how long no inbound byte may have come before a missing
	// reader counts: a client may read elsewhere what it asks for here.
	silence = 2 * time.Second
	// launch is how long a process lives that only starts us.
	launch = 5 * time.Second
	// orphanWait is how long a client has to show itself by a byte after the
	// end of a parent of which is not known whether it was the client.
	orphanWait = 5 * time.Second

	// lookAtFile is the time between two looks at how far a file was read.
	lookAtFile = 100 * time.Millisecond
)

// Options say what to watch. The handles are borrowed, for good.
type Options struct {
	In, Out pipes.Handle
	// Activity returns a number that changes with every inbound byte, as far
	// as that can be seen.
	Activity func() uint64
	// Parent is false when the end of our parent means nothing.
	Parent bool
	// HangupIgnored is true when we were started with SIGHUP ignored: then a
	// parent's end is expected (nohup).
	HangupIgnored bool
}

// Watch starts to watch. Each sign is sent at most once. The watching ends
// with the process.
func Watch(o Options) <-chan Sign {
	w := &watch{Options: o, signs: make(chan Sign, 3), ended: make(chan struct{})}
	go w.input()
	go w.output()
	if o.Parent {
		w.parent(os.Getppid())
	}
	return w.signs
}

// Gone reports whether the client is gone, as its ends of the wire show now: a
// server may see that, and end, before a sign is sent.
func Gone(in, out pipes.Handle) bool {
	return readersGone(out) && (writersGone(in) || pipes.IsNull(in))
}

// Going reports whether at least one direction has nobody at its other end. A
// client that is killed does not lose both in one instant.
func Going(in, out pipes.Handle) bool { return readersGone(out) || writersGone(in) }

// waitFileRead waits until the file h has been read to its end, by any process. It
// returns false if h is no file, or if the system doesn't tell.
func waitFileRead(h pipes.Handle) bool {
	for {
		read, known := isFileRead(h)
		if read || !known {
			return read
		}
		time.Sleep(lookAtFile)
	}
}

type watch struct {
	Options
	signs chan Sign
	ended chan struct{} // closed with InputEnded
}

func (w *watch) input() {
	if !waitWritersGone(w.In) && !pipes.IsNull(w.In) && !waitFileRead(w.In) {
		return
	}
	close(w.ended)
	w.signs <- InputEnded
}

// output applies the rule for a missing reader. A named FIFO may get a reader
// again, so there it counts only once the input has ended too.
func (w *watch) output() {
	fifo := isNamed(w.Out)
	for waitReadersGone(w.Out) {
		if fifo {
			<-w.ended
		} else {
			w.waitSilence()
		}
		if readersGone(w.Out) {
			w.signs <- NoReader
			return
		}
	}
}

// waitSilence waits for the input's end or for a while without a byte.
func (w *watch) waitSilence() {
	b := w.bytes()
	defer b.close()
	for !b.still(silence, w.ended) {
	}
}

// inbound tells whether bytes come from the client.
type inbound struct {
	seen   func() uint64
	others *activity
	last   [2]uint64
}

func (w *watch) bytes() *inbound {
	b := &inbound{seen: w.Activity, others: watchActivity(w.In)}
	b.moved()
	return b
}

func (b *inbound) close() { b.others.close() }

// moved reports whether a byte has come since it was last asked.
func (b *inbound) moved() bool {
	last := b.last
	b.last = [2]uint64{b.seen(), b.others.seen()}
	return b.last != last
}

// still returns true after d without a byte or when enough is closed, false at
// the first byte. Time goes by in looks, so that a stop of this process or of
// the whole machine is no silence.
func (b *inbound) still(d time.Duration, enough <-chan struct{}) bool {
	const look = 50 * time.Millisecond
	tick := time.NewTicker(look)
	defer tick.Stop()
	for quiet := time.Duration(0); quiet < d; quiet += look {
		select {
		case <-enough:
			return true
		case <-tick.C:
		}
		if b.moved() {
			return false
		}
	}
	return true
}

// parent decides whether our parent is the client, and watches it if so.
func (w *watch) parent(pid int) {
	started := time.Now()
	gone := parentEnd(pid)
	if gone == nil {
		return
	}
	known, holds := holdsOtherEnd(pid, w.In, w.Out)
	switch {
	case known && !holds:
		// It only passed the wire on to us.
	case known:
		go func() {
			<-gone
			w.signs <- ParentGone
		}()
	case !w.HangupIgnored:
		go w.unknownParent(gone, started)
	}
}

// unknownParent is the rule where the system does not tell who holds the other
// end of the wire.
func (w *watch) unknownParent(gone <-chan struct{}, started time.Time) {
	<-gone
	if time.Since(started) < launch {
		return // it was a launcher
	}
	b := w.bytes()
	defer b.close()
	if b.still(orphanWait, nil) {
		w.signs <- ParentGone
	}
}
