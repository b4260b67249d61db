package pipes

// Modes is what a process can change on an open object for everyone who
// shares it: O_NONBLOCK and, on a terminal, its settings (Unix); the console
// mode (Windows).
type Modes struct{ modes }

// ReadModes returns the present modes of h, which is borrowed.
func ReadModes(h Handle) (Modes, error) {
	m, err := readModes(h)
	return Modes{m}, err
}

// Reinstate puts h, which is borrowed, back to m and changes nothing that is
// as it was. The settings of a terminal are left alone while another process
// group is in the foreground: they are that group's then.
func (m Modes) Reinstate(h Handle) error { return reinstate(h, m.modes) }

// SetBlocking clears O_NONBLOCK on the open file description of h, which is
// borrowed: a child expects to get descriptors that block. Everyone who shares
// the description sees it; [Modes.Reinstate] is the way back.
func SetBlocking(h Handle) error { return setBlocking(h) }
