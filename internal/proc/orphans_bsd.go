//go:build unix && !linux && !freebsd

package proc

import "syscall"

// These systems have neither; the keeper ends the tree.

func adoptOrphans()                      {}
func dieWithParent(*syscall.SysProcAttr) {}
