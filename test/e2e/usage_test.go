package e2e

import (
	"encoding/json"
	"fmt"
	"regexp"
	"strings"
	"testing"
)

// What was asked for goes to standard output, with success and nothing else.
func TestRequestedOutput(t *testing.T) {
	version := regexp.MustCompile(`^wireguardrun [^\s]+\n$`)
	help := regexp.MustCompile(`(?s)^wireguardrun runs a server that .*\n  wireguardrun \[flags\] \[--\] command \[args\] .*--stray=stderr .*\n`)
	for _, tt := range []struct {
		args string
		want *regexp.Regexp
	}{
		{"--help", help},
		{"-h", help},
		{"run --help", help},
		{"--stray=null --help -- x", help},
		{"attach --help", regexp.MustCompile(`^Usage: wireguardrun attach `)},
		{"demo -h", regexp.MustCompile(`^Usage: wireguardrun demo `)},
		{"version --help", regexp.MustCompile(`^Usage: wireguardrun version`)},
		{"--version", version},
		{"version", version},
	} {
		t.Run(tt.args, func(t *testing.T) {
			t.Parallel()
			stdout, stderr, status := run(t, Options{Flags: strings.Fields(tt.args)}, "not read\n")
			if !tt.want.MatchString(stdout) || stderr != "" || status != (Status{}) {
				t.Errorf("standard output %s, standard error %q, %v", clip(stdout), stderr, status)
			}
		})
	}
}

// Every wrong use is told on standard error, in one line and a hint at most,
// with 125, and starts nothing.
func TestWrongUse(t *testing.T) {
	for _, tt := range []struct {
		args    string
		env     string
		message string // of the first line
		hint    string
	}{
		{"", "", "no command to run", "name the server to start"},
		{"--", "", "no command to run", "name the server to start"},
		{"run", "", "no command to run", ""},
		{"attach", "", "no command to run", "wireguardrun attach -- node"},
		{"--no-such-flag -- {}", "", "unknown flag --no-such-flag", "wireguardrun --help"},
		{"--stary=null -- {}", "", `did you mean "--stray"?`, ""},
		{"-x {}", "", "unknown flag -x", ""},
		{"--cwd", "", "--cwd: needs a value", ""},
		{"--cwd= -- {}", "", "--cwd: needs a value", ""},
		{"--wire=nonsense -- {}", "", "must be auto, fds or stdio", ""},
		{"--stray=nonsense -- {}", "", "must be stderr, null, log or file:PATH", ""},
		{"--stray=x.log -- {}", "", "must be stderr, null, log or file:PATH", "--stray=file:x.log"},
		{"--stray=file: -- {}", "", "needs a path", ""},
		{"--stray-max=0 -- {}", "", "must be a number of bytes above 0", ""},
		{"--stray-max=64MB -- {}", "", "must be a number of bytes above 0", ""},
		{"--stray-max=99999999999g -- {}", "", "is too large", ""},
		{"--stdin=nonsense -- {}", "", "must be null or lifeline", ""},
		{"--env=nonsense -- {}", "", "must be NAME=VALUE", "inherits"},
		{"--env=WIREGUARDRUN_IN=3 -- {}", "", "is set by wireguardrun itself", ""},
		{"--log-level=nonsense -- {}", "", "must be debug, info, warn, error or off", ""},
		{"--log-format=nonsense -- {}", "", "must be text or json", ""},
		{"-- {}", "WIREGUARDRUN_STRAY=nonsense", "WIREGUARDRUN_STRAY=nonsense: must be", ""},
		{"-- {}", "WIREGUARDRUN_LOG_LEVEL=nonsense", "WIREGUARDRUN_LOG_LEVEL=nonsense: must be", ""},
		{"demo {}", "", "demo takes no arguments", "wireguardrun -- demo"},
		{"version {}", "", "version takes no arguments", ""},
		{"demo --stray=null", "", "unknown flag --stray", ""},
	} {
		t.Run(tt.args+" "+tt.env, func(t *testing.T) {
			t.Parallel()
			// In place of {}: a server that would show itself.
			argv, env := roleCommand(printer, "started")
			var o Options
			for _, word := range strings.Fields(tt.args) {
				if word == "{}" {
					o.Flags = append(o.Flags, argv...)
				} else {
					o.Flags = append(o.Flags, word)
				}
			}
			o.Env = append(env, tt.env)
			stdout, stderr, status := run(t, o, "")
			wantFailure(t, stdout, stderr, status, 125, tt.message)
			first, rest, _ := strings.Cut(stderr, "\n")
			if !strings.Contains(first, tt.message) {
				t.Errorf("the first line is %q, want %q in it", first, tt.message)
			}
			if rest != "" && (!strings.HasPrefix(rest, "wireguardrun: hint: ") || strings.Count(rest, "\n") != 1) {
				t.Errorf("after the first line comes %q", rest)
			}
			if !strings.Contains(rest, tt.hint) {
				t.Errorf("the hint is %q, want %q in it", rest, tt.hint)
			}
		})
	}
}

// Words of the server's are the server's.
func TestServerNamedLikeACommand(t *testing.T) {
	for _, name := range []string{"demo", "version", "attach", "run"} {
		t.Run(name, func(t *testing.T) {
			stdout, stderr, status := run(t, Options{Command: []string{name}, Flags: []string{"--env=PATH="}}, "")
			wantFailure(t, stdout, stderr, status, 127, fmt.Sprintf("cannot find %q in PATH=", name))
		})
	}
}

// A session without a fault says nothing, whatever the format; a fault is one
// JSON object on a line where that is asked for.
func TestMessages(t *testing.T) {
	t.Run("quiet", func(t *testing.T) {
		for _, flag := range []string{"--log-level=info", "--log-format=json"} {
			s := startServer(t, Options{Flags: []string{flag}})
			order(s, `out ""`)
			finish(s)
			wantStderr(s, "")
		}
	})
	t.Run("json", func(t *testing.T) {
		for _, o := range []Options{
			{Flags: []string{"--log-format=json"}},
			{Env: []string{"WIREGUARDRUN_LOG_FORMAT=json"}},
		} {
			o.Command = []string{"no such\nprogram\xff"}
			_, stderr, status := run(t, o, "")
			var event struct{ Level, Time, Message, Hint string }
			if err := json.Unmarshal([]byte(stderr), &event); err != nil || strings.Count(stderr, "\n") != 1 {
				t.Fatalf("standard error has %q (%v), want one object on one line", stderr, err)
			}
			if event.Level != "error" || event.Time == "" || event.Hint == "" ||
				!strings.HasPrefix(event.Message, "cannot find a program called \"no such\nprogram") {
				t.Errorf("the event is %+v", event)
			}
			if status != (Status{Code: 127}) {
				t.Errorf("ended with %v", status)
			}
		}
	})
	t.Run("json of a line that can't be read", func(t *testing.T) {
		for _, line := range []string{
			"--log-format=json --bad -- x", "--bad --log-format json -- x", "--wire auto --log-format=json --bad -- x",
			"attach --log-format=json --bad", "demo --log-format=json --bad",
		} {
			_, stderr, status := run(t, Options{Flags: strings.Fields(line)}, "")
			if !json.Valid([]byte(stderr)) || status != (Status{Code: 125}) {
				t.Errorf("%s: standard error has %q, %v", line, stderr, status)
			}
		}
	})
	t.Run("text is one line", func(t *testing.T) {
		_, stderr, _ := run(t, Options{Command: []string{"no such\nprogram\x1b[31m"}}, "")
		lines := strings.Split(stderr, "\n")
		if len(lines) != 3 || !strings.Contains(lines[0], `no such\nprogram\x1b[31m`) {
			t.Errorf("standard error has %q", stderr)
		}
	})
	t.Run("off", func(t *testing.T) {
		stdout, stderr, status := run(t, Options{Command: []string{"no-such-program"}, Flags: []string{"--log-level=off"}}, "")
		if stdout != "" || stderr != "" || status != (Status{Code: 127}) {
			t.Errorf("standard output %q, standard error %q, %v", stdout, stderr, status)
		}
	})
}

// A flag that is of no use beside another is told, and the server is started.
func TestFlagsWithoutEffect(t *testing.T) {
	const told = ": without effect, since with --wire=fds nothing looks at the messages"
	for flags, want := range map[string]string{
		"--wire=fds --strict-ids --stray=null --glued=divert": "--glued, --strict-ids" + told,
		"--wire=fds --stray=null":                             "",
		"--wire=auto --strict-ids --glued=divert":             "",
	} {
		t.Run(flags, func(t *testing.T) {
			s := start(t, Options{Flags: strings.Fields(flags), Role: server, Env: []string{"WIREGUARDRUN_FRAMING=headers"}})
			s.CloseStdin()
			s.ExpectEnd()
			s.ExpectExit(Status{})
			if got := s.Stderr(); want == "" && got != "" || !strings.Contains(got, want) {
				t.Errorf("standard error has %q", got)
			}
		})
	}
}
