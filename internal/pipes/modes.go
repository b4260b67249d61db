package pipes

// Modes is what a process can change on an open object for everyone who
// shares it: O_NONBLOCK and, on a terminal, its settings (Unix); the console
// mode (Windows).
type Modes struct {
	modes
	of Identity // of the object that they were read from
}

// ReadModes returns the present modes of h, which is borrowed.
func ReadModes(h Handle) (Modes, error) {
	id, err := identify(h)
	if err != nil {
		return Modes{}, err
	}
	m, err := readModes(h)
	return Modes{m, id}, err
}

// Reinstate puts h, which is borrowed, back to m and changes nothing that is
// as it was. A handle that names another object by now is left alone, and so
// are the settings of a terminal while another process group is in the
// foreground: they are that group's then.
func (m Modes) Reinstate(h Handle) error {
	if !m.of.Is(h) {
		return nil
	}
	return reinstate(h, m.modes)
}

// SetBlocking clears O_NONBLOCK on the open file description of h, which is
// borrowed: a child expects to get descriptors that block. Everyone who shares
// the description sees it; [Modes.Reinstate] is the way back.
func SetBlocking(h Handle) error { return setBlocking(h) }
