package guard

import "fmt"

// Stream names one of the two directions of the wire.
type Stream uint8

const (
	In  Stream = iota // standard input: client to server
	Out               // standard output: server to client
)

func (s Stream) String() string {
	switch s {
	case In:
		return "in"
	case Out:
		return "out"
	default:
		return fmt.Sprintf("Stream(%d)", uint8(s))
	}
}

// State is how far the claim of one stream has come. The package documentation
// shows how the states follow each other.
type State uint8

const (
	// Free: not claimed. The standard descriptor is what it was.
	Free State = iota
	// Duplicated: the wire has a private duplicate, the standard descriptor
	// is still on the wire. No claim rests here.
	Duplicated
	// Diverted: the claim is complete. The wire is served from the private
	// duplicate and the standard descriptor points at the diversion.
	Diverted
	// InPlace: a step failed and was undone. The wire is served from the
	// standard descriptor itself, unprotected, with the claim held.
	InPlace
	// RolledForward: a step failed and could not be undone. The wire is
	// served from the private duplicate, like a completed claim.
	RolledForward
	// Stuck: Release could not put the wire back on the standard
	// descriptor. The claim is kept and the wire still served; Release may
	// be called again.
	Stuck
)

var stateNames = [...]string{"free", "duplicated", "diverted", "in place", "rolled forward", "stuck"}

func (s State) String() string {
	if int(s) < len(stateNames) {
		return stateNames[s]
	}
	return fmt.Sprintf("State(%d)", uint8(s))
}

// Status holds the states of both directions; a direction that was not asked
// for is [Free].
type Status struct{ In, Out State }

// moves lists every transition there is. The diagram in doc.go shows them, and
// TestMoves has them a second time.
var moves = map[State][]State{
	// Free to Diverted is a wire that was handed down already diverted.
	Free:          {Duplicated, InPlace, Diverted},
	Duplicated:    {Diverted, InPlace, RolledForward},
	Diverted:      {Free, Stuck},
	InPlace:       {Free},
	RolledForward: {Free, Stuck},
	Stuck:         {Free, Stuck},
}

// to is the only place where a state changes.
func (c *claim) to(next State) {
	for _, allowed := range moves[c.state] {
		if next == allowed {
			c.state = next
			return
		}
	}
	panic(fmt.Sprintf("guard: internal error: %s can't go from %s to %s", c.stream, c.state, next))
}
