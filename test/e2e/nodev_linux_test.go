package e2e

import (
	"os"
	"os/exec"
	"slices"
	"testing"
)

// A server that needs no /dev runs where there is none, as in a bare chroot,
// and gets what the null device would be.
func TestWithoutDev(t *testing.T) {
	unshare := []string{needs(t, "unshare"), "--mount"}
	if os.Getuid() != 0 {
		unshare = append(unshare, "--user", "--map-root-user")
	}
	prefix := append(unshare, "sh", "-c", `mount -t tmpfs none /dev && exec "$0" "$@"`)
	if text, err := exec.Command(prefix[0], append(slices.Clone(prefix[1:]), "true")...).CombinedOutput(); err != nil {
		cannotRun(t, "no mount namespace: %v: %s", err, text)
	}
	for _, flag := range []string{"--stray=stderr", "--stray=null"} {
		t.Run(flag, func(t *testing.T) {
			// Standard error is the wire, so nothing printed may appear.
			s := startMerged(t, Options{Prefix: prefix, Role: server, Flags: []string{flag}})
			if got := ask(s, "stdin"); got != "0 bytes, EOF" {
				t.Errorf("the server's standard input gives %s", got)
			}
			order(s, `out "stray\n"`, `err "for people\n"`)
			finish(s)
		})
	}
}
