package pipes

// Identity names the object behind a handle, so that a number that was told to
// another process can be checked there. Two handles with different identities
// are certainly different objects; "" is unknown and equals nothing.
//
// Unix: device and inode. Windows: the kind of object and, for a pipe, its
// name.
type Identity string

// Identify returns the identity of h, which is borrowed.
func Identify(h Handle) (Identity, error) { return identify(h) }

// Is reports whether h, which is borrowed, has this identity.
func (id Identity) Is(h Handle) bool {
	if id == "" {
		return false
	}
	got, err := identify(h)
	return err == nil && got == id
}

// Verdict is the answer of [Compare].
type Verdict uint8

const (
	Unknown   Verdict = iota // the system refused to tell
	Closed                   // the first handle is not open
	Different                // certainly two objects
	Alike                    // the same file, perhaps opened twice
	Same                     // certainly the same object
)

func (v Verdict) String() string {
	switch v {
	case Closed:
		return "closed"
	case Different:
		return "different"
	case Alike:
		return "alike"
	case Same:
		return "same"
	default:
		return "unknown"
	}
}

// Compare tells whether a and b, which are borrowed, are one object: one open
// file description on Unix, one kernel object on Windows.
func Compare(a, b Handle) Verdict { return compare(a, b) }

// SharesFile reports whether what is written to a arrives where what is
// written to b does, and no person reads both: the case of 2>&1, except on a
// terminal, where mixing them is what a user expects.
func SharesFile(a, b Handle) bool {
	return sameFile(a, b) && !IsTerminal(a)
}
