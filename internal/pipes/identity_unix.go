//go:build unix

package pipes

import (
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

func identify(h Handle) (Identity, error) {
	var st unix.Stat_t
	if err := unix.Fstat(int(h), &st); err != nil {
		return "", os.NewSyscallError("fstat", err)
	}
	return identityOf(&st), nil
}

// sameFile goes by the file and not by its opening: "2>/dev/stdout" opens the
// pipe of standard output a second time.
func sameFile(a, b Handle) bool {
	ia, err := identify(a)
	return err == nil && ia.Is(b)
}

func compare(a, b Handle) Verdict {
	var sa, sb unix.Stat_t
	if err := unix.Fstat(int(a), &sa); err != nil {
		if err == unix.EBADF {
			return Closed
		}
		return Unknown
	}
	if err := unix.Fstat(int(b), &sb); err != nil {
		if err == unix.EBADF {
			return Different
		}
		return Unknown
	}
	if sa.Dev != sb.Dev || sa.Ino != sb.Ino {
		return Different
	}
	return sameDescription(a, b)
}

func identityOf(st *unix.Stat_t) Identity {
	return Identity(fmt.Sprintf("%x:%x", st.Dev, st.Ino))
}
