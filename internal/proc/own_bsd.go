//go:build unix && !linux

package proc

import "os"

// ownProgram returns a path to the program that we are.
func ownProgram() (string, error) { return os.Executable() }

func nameSelf(string) {}
