//go:build unix

package guard

import (
	"errors"
	"os"
	"testing"

	"github.com/wireguardrun/wireguardrun/internal/handover"
	"github.com/wireguardrun/wireguardrun/internal/pipes"
)

// passOn gives the child two more files and returns their handles there.
func passOn(c *child, a, b *os.File) (inChildA, inChildB pipes.Handle) {
	c.cmd.ExtraFiles = []*os.File{a, b}
	return 3, 4
}

// identities tells what 3 and 4 are in this process, which may have opened
// files of its own there.
func identities() (ids [2]pipes.Identity) {
	ids[In], _ = pipes.Identify(3)
	ids[Out], _ = pipes.Identify(4)
	return ids
}

func init() {
	roles["identities"] = func([]byte) any { return identities() }
	addRole("handed down, with children", func(t *childTest, _ []byte) {
		t.closed = 2
		wire := identities()
		below := func(when string, want bool) {
			var ids [2]pipes.Identity
			t.must(subprocess("identities", &ids))
			if has := [2]bool{ids[In] == wire[In], ids[Out] == wire[Out]}; has != [2]bool{want, want} {
				t.errorf("%s a subprocess has the wire on 3 and 4: %v, want %t", when, has, want)
			}
		}
		below("before Open", true)
		for range 2 {
			w, err := Open()
			t.must(err)
			below("during the claim", false)
			t.must(w.Release())
			below("after Release", true)
		}
		w, err := Open()
		t.must(err)
		t.must(w.Close())
		below("after Close", false)
	})
}

func TestHandedDownIsNotInherited(t *testing.T) {
	t.Parallel()
	s := handDown(t, "handed down, with children", nil, handover.Fds, nil)
	s.start()
	s.end()
}

func TestHandedDownOnOtherNumbers(t *testing.T) {
	t.Parallel()
	s := handDown(t, "handed down", nil, handover.Fds, func(r *handover.Record) {
		r.In.Number, r.In.Handle = 7, 7
		r.Out.Number, r.Out.Handle = 8, 8
	})
	s.viaShell("7<&3 8>&4 3<&- 4>&-")
	testHandedDown(t, s)
}

func init() {
	addRole("number reused", func(t *childTest, _ []byte) {
		told := contract()
		null, err := pipes.OpenNull()
		t.must(err)
		t.must(pipes.Redirect(null, 3)) // as a launcher does that knows of no 3
		t.must(pipes.Close(null))
		if w, err := Open(); w != nil || !errors.Is(err, ErrHandover) {
			t.errorf("Open gave %v, %v", w, err)
		}
		t.contractIs("after a refusal", told)
		var ids [2]pipes.Identity
		t.must(subprocess("identities", &ids))
		if ids != identities() {
			t.errorf("a subprocess has other files on 3 and 4")
		}
	})
}

func TestHandedDownNumberReused(t *testing.T) {
	t.Parallel()
	s := handDown(t, "number reused", nil, handover.Fds, nil)
	s.start()
	if wire, stdout := s.end(); wire+stdout != "" {
		t.Errorf("the wire carried %q, standard output %q", wire, stdout)
	}
}
