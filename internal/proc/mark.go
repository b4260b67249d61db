//go:build linux || darwin

package proc

import "strings"

// isOf reports whether the value of EnvRun names run.
func isOf(value, run string) bool {
	for name := range strings.SplitSeq(value, ":") {
		if name == run {
			return true
		}
	}
	return false
}
