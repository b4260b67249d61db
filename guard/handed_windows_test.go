package guard

import (
	"os"
	"syscall"

	"golang.org/x/sys/windows"

	"github.com/wireguardrun/wireguardrun/internal/pipes"
)

// passOn gives the child two more files and returns their handles there.
func passOn(c *child, a, b *os.File) (inChildA, inChildB pipes.Handle) {
	c.cmd.SysProcAttr = &syscall.SysProcAttr{}
	for _, f := range []*os.File{a, b} {
		h := windows.Handle(f.Fd())
		if err := windows.SetHandleInformation(h, windows.HANDLE_FLAG_INHERIT, windows.HANDLE_FLAG_INHERIT); err != nil {
			c.t.Fatal(err)
		}
		c.cmd.SysProcAttr.AdditionalInheritedHandles = append(c.cmd.SysProcAttr.AdditionalInheritedHandles, syscall.Handle(h))
	}
	return pipes.Handle(a.Fd()), pipes.Handle(b.Fd())
}
