package guard

import "os"

// Option changes what [Claim] and [Open] do.
type Option func(*config)

type config struct {
	only      [2]bool
	lifeline  bool
	divertOut *os.File
}

func newConfig(opts []Option) config {
	var cfg config
	for _, o := range opts {
		o(&cfg)
	}
	if cfg.only == [2]bool{} {
		cfg.only = [2]bool{true, true}
	}
	return cfg
}

// Only claims stream s and leaves the other one alone. Only(In) and Only(Out)
// together claim both, which is the default.
func Only(s Stream) Option {
	return func(c *config) {
		if int(s) < len(c.only) {
			c.only[s] = true
		}
	}
}

// DivertTo sends what the process prints on standard output during the claim
// to f instead of standard error. f is duplicated and may be closed after the
// call. Where f is the wire itself, the null device is used.
func DivertTo(f *os.File) Option {
	return func(c *config) { c.divertOut = f }
}

// Lifeline points standard input at an open pipe that never has data instead
// of the null device. For code that quits when its standard input ends, and
// for event loops that refuse the null device.
func Lifeline() Option {
	return func(c *config) { c.lifeline = true }
}
