//go:build linux || darwin

package proc

import "strings"

// namesRun reports whether the value of EnvRun names run.
func namesRun(value, run string) bool {
	for name := range strings.SplitSeq(value, ":") {
		if name == run {
			return true
		}
	}
	return false
}
