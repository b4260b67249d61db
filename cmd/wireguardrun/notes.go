package main

import (
	"strconv"

	"github.com/wireguardrun/wireguardrun/internal/pipes/frame"
)

// note tells what the relay has noticed. Each kind comes once, except those of
// messages that are lost.
func (l *life) note(n frame.Note) {
	switch n.Kind {
	case frame.NoteRepair:
		l.say.info().Stringer("fault", n.Repair).
			Str(hintField, "messages of this kind are put right as they pass; --no-repair diverts them").
			Msg("the server's messages are not quite what the protocol says")
	case frame.NoteTooLong:
		l.say.error().Int64("bytes", n.Size).
			Str(hintField, "to let it pass: --max-frame="+mebibytes(n.Size)).
			Msg("a message of the server is longer than --max-frame and was diverted")
	case frame.NoteHalf:
		l.say.error().Int64("bytes", n.Size).
			Str(hintField, "the server ended while it was writing; it should wait until its output is flushed").
			Msg("the server's last message is cut off and was diverted")
	case frame.NoteUnknownProtocol:
		l.say.warn().
			Str(hintField, "--framing says what the messages look like; --wire=fds keeps stray output away without looking").
			Msg("the client speaks no protocol that is known here: everything passes raw, stray output too")
	}
}

// mebibytes is a size that holds n bytes, as --max-frame takes it.
func mebibytes(n int64) string {
	return strconv.FormatInt(n>>20+1, 10) + "MiB"
}
