package e2e

import (
	"regexp"
	"strings"
	"testing"
)

const (
	demoClean = "\nguarded: 7 of 7 replies arrived, 0 stray lines on the wire\n"
	demoDirty = `\nbare:    [0-6] of 7 replies arrived, [1-9]\d* stray lines on the wire\n`
)

// The demo shows that the bare wire is spoilt and that the guarded one is not.
func TestDemo(t *testing.T) {
	for _, env := range [][]string{nil, {"WIREGUARDRUN_OFF=1"}, {"WIREGUARDRUN_STRAY=nonsense"}, {"WIREGUARDRUN_IN=3", "WIREGUARDRUN_OUT=4"}} {
		t.Run(strings.Join(env, " "), func(t *testing.T) {
			t.Parallel()
			stdout, stderr, status := run(t, Options{Flags: []string{"demo"}, Env: env}, "")
			if !strings.Contains(stdout, demoClean) || !regexp.MustCompile(demoDirty).MatchString(stdout) {
				t.Errorf("the demo shows:\n%s", stdout)
			}
			if strings.Contains(stdout, "\x1b") {
				t.Error("there are colours in what is no terminal")
			}
			if stderr != "" || status != (Status{}) {
				t.Errorf("standard error %q, %v", stderr, status)
			}
		})
	}
}
