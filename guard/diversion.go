package guard

import "github.com/wireguardrun/wireguardrun/internal/pipes"

// openDiversion is the same on every system: see system.open.
func openDiversion(what diversion) (d, hold handle, err error) {
	switch what.kind {
	case toStderr:
		d, err = pipes.Duplicate(pipes.Standard(2))
	case toFile:
		d, err = pipes.Duplicate(what.file)
	case toLifeline:
		return pipes.Pipe()
	default:
		d, err = pipes.OpenNull()
	}
	return d, none, err
}

// reachesWire is the same on every system too.
func reachesWire(what diversion) bool {
	h := pipes.Standard(2)
	if what.kind == toFile {
		h = what.file
	}
	return pipes.SharesFile(h, pipes.Standard(1))
}
