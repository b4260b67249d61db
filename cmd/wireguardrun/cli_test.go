package main

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/alecthomas/kong"
	"github.com/rs/zerolog"

	"github.com/wireguardrun/wireguardrun/internal/pipes/frame"
)

// cleanEnv makes a test independent of the variables it is started with. An
// empty variable counts as unset.
func cleanEnv(t testing.TB) {
	t.Helper()
	for _, pair := range os.Environ() {
		if name, _, _ := strings.Cut(pair, "="); strings.HasPrefix(name, "WIREGUARDRUN_") {
			t.Setenv(name, "")
		}
	}
}

// defaults is the config of run without any flag.
func defaults(argv ...string) config {
	return config{
		Wire: "auto", Frame: frame.Options{MaxFrame: 64 << 20, Repair: true, Glued: true}, StrayMax: 64 << 20, LogLevel: zerolog.InfoLevel, Argv: argv,
		StopTimeout: 5 * time.Second, WatchParent: true, Keeper: true,
	}
}

func TestParseGrammar(t *testing.T) {
	cleanEnv(t)
	tests := []struct {
		line    string // words with one space between; <> is an empty word
		command command
		argv    string
	}{
		{"srv", commandRun, "srv"},
		{"-- srv", commandRun, "srv"},
		{"srv a b", commandRun, "srv a b"},
		{"-- srv a b", commandRun, "srv a b"},
		{"-", commandRun, "-"},

		// What follows the first word is the server's, whatever it looks like.
		{"srv -- y", commandRun, "srv -- y"},
		{"-- srv -- y", commandRun, "srv -- y"},
		{"-- -- srv", commandRun, "-- srv"},
		{"srv -h", commandRun, "srv -h"},
		{"srv --version", commandRun, "srv --version"},
		{"srv --stray=null --bogus", commandRun, "srv --stray=null --bogus"},
		{"srv <> x", commandRun, "srv <> x"},
		{"--stray=null srv --stray=log", commandRun, "srv --stray=log"},
		{"--stray null -- srv --help", commandRun, "srv --help"},
		{"--stray null srv -- --help", commandRun, "srv -- --help"},
		{"--log-level=debug -- -x", commandRun, "-x"},
		{"-- --stray=null", commandRun, "--stray=null"},
		{"--cwd - srv", commandRun, "srv"},

		// The value of a flag is not a command.
		{"--cwd demo srv", commandRun, "srv"},
		{"--log-level debug --log-format text demo", commandDemo, ""},

		// A command of ours only as the first word and not after "--".
		{"demo", commandDemo, ""},
		{"version", commandVersion, ""},
		{"-- demo", commandRun, "demo"},
		{"-- demo x", commandRun, "demo x"},
		{"-- run", commandRun, "run"},
		{"-- attach -- x", commandRun, "attach -- x"},
		{"--stray=null -- version", commandRun, "version"},
		{"srv demo", commandRun, "srv demo"},
		{"Demo", commandRun, "Demo"},
		{"run srv", commandRun, "srv"},
		{"run -- srv", commandRun, "srv"},
		{"run demo", commandRun, "demo"},
		{"run run run", commandRun, "run run"},
		{"run --stray=null srv --help", commandRun, "srv --help"},
		{"--stdin=null run --stray null -- -x -- y", commandRun, "-x -- y"},
		{"attach srv", commandAttach, "srv"},
		{"attach -- srv -- y", commandAttach, "srv -- y"},
		{"attach srv -h", commandAttach, "srv -h"},
		{"attach attach", commandAttach, "attach"},
		{"attach --log-level=debug -- demo", commandAttach, "demo"},
		{"--log-level debug attach --log-format json srv --x", commandAttach, "srv --x"},
		{"--log-level debug demo --log-format=json", commandDemo, ""},
	}
	for _, test := range tests {
		inv, err := parse(split(test.line), io.Discard)
		if err != nil {
			t.Errorf("%s: %v", test.line, err)
			continue
		}
		if inv.Command != test.command || !slices.Equal(inv.Config.Argv, split(test.argv)) {
			t.Errorf("%s: command %d argv %q, want %d %q", test.line, inv.Command, inv.Config.Argv, test.command, split(test.argv))
		}
	}
}

// split makes words of a test's line.
func split(line string) []string {
	words := strings.Fields(line)
	for i, w := range words {
		if w == "<>" {
			words[i] = ""
		}
	}
	return words
}

func TestParseValues(t *testing.T) {
	cleanEnv(t)
	const notUTF8 = "d\xff\xfe,é"
	tests := []struct {
		args []string
		want func(*config)
	}{
		{nil, func(*config) {}},
		{[]string{"--wire=fds"}, func(c *config) { c.Wire = "fds" }},
		{[]string{"--wire", "stdio"}, func(c *config) { c.Wire = "stdio" }},
		{[]string{"--framing=headers"}, func(c *config) { c.Frame.Framing = frame.Headers }},
		{[]string{"--glued=divert"}, func(c *config) { c.Frame.Glued = false }},
		{[]string{"--no-repair"}, func(c *config) { c.Frame.Repair = false }},
		{[]string{"--strict-ids"}, func(c *config) { c.Frame.StrictIDs = true }},
		{[]string{"--max-frame=1m"}, func(c *config) { c.Frame.MaxFrame = 1 << 20 }},
		{[]string{"--stray=stderr"}, func(*config) {}},
		{[]string{"--stray=null"}, func(c *config) { c.Stray = strayNull }},
		{[]string{"--stray", "log"}, func(c *config) { c.Stray = strayLog }},
		{[]string{"--stray=file:a b=c"}, func(c *config) { c.Stray, c.StrayFile = strayFile, "a b=c" }},
		{[]string{"--stray", "file:" + notUTF8}, func(c *config) { c.Stray, c.StrayFile = strayFile, notUTF8 }},
		{[]string{"--stray=null", "--stray=log"}, func(c *config) { c.Stray = strayLog }},
		{[]string{"--stop-timeout=1.5s"}, func(c *config) { c.StopTimeout = 1500 * time.Millisecond }},
		{[]string{"--eof-timeout", "2m"}, func(c *config) { c.EOFTimeout = 2 * time.Minute }},
		{[]string{"--eof-timeout=off"}, func(*config) {}},
		{[]string{"--watch-parent=no"}, func(c *config) { c.WatchParent = false }},
		{[]string{"--keeper=no"}, func(c *config) { c.Keeper = false }},
		{[]string{"--stray-max=1"}, func(c *config) { c.StrayMax = 1 }},
		{[]string{"--stray-max=2k"}, func(c *config) { c.StrayMax = 2048 }},
		{[]string{"--stdin=null"}, func(c *config) { c.Stdin = stdinNull }},
		{[]string{"--summary"}, func(c *config) { c.Summary = "stderr" }},
		{[]string{"--summary=s.json"}, func(c *config) { c.Summary = "s.json" }},
		{[]string{"--stdin=lifeline"}, func(c *config) { c.Stdin = stdinLifeline }},
		{[]string{"--cwd", notUTF8}, func(c *config) { c.Dir = notUTF8 }},
		{[]string{"--cwd=-x"}, func(c *config) { c.Dir = "-x" }},
		{[]string{"--env", "A=1,2", "--env=B=", "--env=A=" + notUTF8}, func(c *config) { c.Env = []string{"A=1,2", "B=", "A=" + notUTF8} }},
		{[]string{"--env=C==x=y"}, func(c *config) { c.Env = []string{"C==x=y"} }},
		{[]string{"--env=WIREGUARDRUN_OFF=1"}, func(c *config) { c.Env = []string{"WIREGUARDRUN_OFF=1"} }},
		{[]string{"--log-level=debug"}, func(c *config) { c.LogLevel = zerolog.DebugLevel }},
		{[]string{"--log-level=info"}, func(*config) {}},
		{[]string{"--log-level=warn"}, func(c *config) { c.LogLevel = zerolog.WarnLevel }},
		{[]string{"--log-level=error"}, func(c *config) { c.LogLevel = zerolog.ErrorLevel }},
		{[]string{"--log-level=off"}, func(c *config) { c.LogLevel = zerolog.Disabled }},
		{[]string{"--log-format=text"}, func(*config) {}},
		{[]string{"--log-format=json"}, func(c *config) { c.LogFormat = formatJSON }},
		{[]string{"--help=false", "--version=false"}, func(*config) {}},
	}
	for _, test := range tests {
		want := defaults("srv", notUTF8, "--x=\x00\xff")
		test.want(&want)
		inv, err := parse(slices.Concat(test.args, want.Argv), io.Discard)
		if err != nil {
			t.Errorf("%q: %v", test.args, err)
		} else if inv.Command != commandRun || !reflect.DeepEqual(inv.Config, want) {
			t.Errorf("%q:\n got %+v\nwant %+v", test.args, inv.Config, want)
		}
	}
}

func TestParseEnvironment(t *testing.T) {
	tests := []struct {
		name, value string
		flags       string
		want        func(*config)
	}{
		{"WIREGUARDRUN_WIRE", "fds", "", func(c *config) { c.Wire = "fds" }},
		{"WIREGUARDRUN_STRAY", "log", "", func(c *config) { c.Stray = strayLog }},
		{"WIREGUARDRUN_STRAY", "", "", func(*config) {}},
		{"WIREGUARDRUN_STRAY", "log", "--stray=null", func(c *config) { c.Stray = strayNull }},
		// A flag wins over a variable, even one that makes no sense.
		{"WIREGUARDRUN_STRAY", "bogus", "--stray=stderr", func(*config) {}},
		{"WIREGUARDRUN_STRAY_MAX", "3g", "", func(c *config) { c.StrayMax = 3 << 30 }},
		{"WIREGUARDRUN_SUMMARY", "1", "", func(c *config) { c.Summary = onStderr }},
		{"WIREGUARDRUN_SUMMARY", "no", "", func(*config) {}},
		{"WIREGUARDRUN_SUMMARY", "s.json", "", func(c *config) { c.Summary = "s.json" }},
		{"WIREGUARDRUN_STDIN", "lifeline", "", func(c *config) { c.Stdin = stdinLifeline }},
		{"WIREGUARDRUN_CWD", "/x y", "", func(c *config) { c.Dir = "/x y" }},
		{"WIREGUARDRUN_LOG_LEVEL", "off", "--cwd=d", func(c *config) { c.LogLevel = zerolog.Disabled; c.Dir = "d" }},
		{"WIREGUARDRUN_LOG_FORMAT", "json", "", func(c *config) { c.LogFormat = formatJSON }},
		{"WIREGUARDRUN_OFF", "1", "", func(c *config) { c.Off = true }},
		{"WIREGUARDRUN_OFF", "yes", "--stray=null", func(c *config) { c.Off, c.Stray = true, strayNull }},
		{"WIREGUARDRUN_OFF", "anything", "", func(c *config) { c.Off = true }},
		{"WIREGUARDRUN_OFF", "0", "", func(*config) {}},
		{"WIREGUARDRUN_OFF", "False", "", func(*config) {}},
		{"WIREGUARDRUN_OFF", "NO", "", func(*config) {}},
		{"WIREGUARDRUN_OFF", "off", "", func(*config) {}},
		// These are not flags that the environment may give.
		{"WIREGUARDRUN_ENV", "A=1", "", func(*config) {}},
		{"WIREGUARDRUN_HELP", "true", "", func(*config) {}},
		{"WIREGUARDRUN_VERSION", "1.2.3", "", func(*config) {}},
	}
	for _, test := range tests {
		t.Run(test.name+"="+test.value+test.flags, func(t *testing.T) {
			cleanEnv(t)
			t.Setenv(test.name, test.value)
			want := defaults("srv")
			test.want(&want)
			inv, err := parse(append(strings.Fields(test.flags), "srv"), io.Discard)
			if err != nil {
				t.Fatal(err)
			}
			if inv.Command != commandRun || !reflect.DeepEqual(inv.Config, want) {
				t.Errorf("\n got %+v\nwant %+v", inv.Config, want)
			}
		})
	}
}

// attach, demo and version must work where a variable is meant for run and
// makes no sense in this version.
func TestOtherCommandsReadOnlyTheirVariables(t *testing.T) {
	cleanEnv(t)
	t.Setenv("WIREGUARDRUN_WIRE", "bogus")
	t.Setenv("WIREGUARDRUN_LOG_LEVEL", "warn")
	for _, args := range [][]string{{"attach", "srv"}, {"demo"}, {"version"}} {
		inv, err := parse(args, io.Discard)
		if err != nil {
			t.Errorf("%q: %v", args, err)
		} else if inv.Config.LogLevel != zerolog.WarnLevel {
			t.Errorf("%q: WIREGUARDRUN_LOG_LEVEL was not read", args)
		}
	}
	t.Setenv("WIREGUARDRUN_LOG_LEVEL", "bogus")
	if _, err := parse([]string{"attach", "srv"}, io.Discard); err == nil {
		t.Error("attach took a bad WIREGUARDRUN_LOG_LEVEL")
	}
}

func TestParseErrors(t *testing.T) {
	tests := []struct {
		line string
		env  string // NAME=VALUE, or ""
		err  string // a part of the message
		hint string // a part of the hint
	}{
		{"", "", "no command to run", "wireguardrun -- node"},
		{"--", "", "no command to run", "--help"},
		{"--stray=null", "", "no command to run", ""},
		{"--stray=null --", "", "no command to run", ""},
		{"run", "", "no command to run", ""},
		{"attach", "", "no command to run", "wireguardrun attach -- node"},
		{"attach --", "", "no command to run", "all flags: wireguardrun attach --help"},
		{"<>", "", "empty word", "variable"},
		{"-- <> x", "", "empty word", ""},

		{"--bogus srv", "", "unknown flag --bogus", "--help"},
		{"--bogus -- srv", "", "unknown flag --bogus", "come after its name"},
		{"--stay=null srv", "", `unknown flag --stay, did you mean "--stray"?`, ""},
		{"-x srv", "", "unknown flag -x", ""},
		{"-hx srv", "", "unknown flag -x", ""},
		{"--=x srv", "", "unknown flag --", ""},
		{"--help=maybe srv", "", "--help: ", ""},
		{"run --bogus", "", "run: unknown flag --bogus", ""},
		{"attach --bogus x", "", "attach: unknown flag --bogus", "wireguardrun attach --help"},
		{"--stray=null attach x", "", "attach: unknown flag --stray", ""},
		{"--cwd demo demo", "", "demo: unknown flag --cwd", ""},
		{"attach --version x", "", "attach: unknown flag --version", ""},
		{"demo --stray=null", "", "demo: unknown flag --stray", ""},
		{"demo x", "", `demo takes no arguments, but got "x"`, "wireguardrun -- demo"},
		{"demo -- x", "", "demo takes no arguments", ""},
		{"version 2", "", "version takes no arguments", "wireguardrun -- version"},

		{"--cwd", "", "--cwd: needs a value", ""},
		{"--cwd= srv", "", "--cwd: needs a value", ""},
		{"--cwd -- srv", "", "--cwd: needs a value", ""},
		{"--cwd --stray=null srv", "", "--cwd: needs a value", ""},
		{"--env", "", "--env: needs a value", ""},
		{"--env -- srv", "", "--env: needs a value", ""},

		{"--wire=Fds srv", "", "--wire=Fds: must be auto, fds or stdio", ""},
		{"--framing=x srv", "", "--framing=x: unknown framing", ""},
		{"--glued=x srv", "", "--glued=x: must be pass or divert", ""},
		{"--max-frame=4g srv", "", "--max-frame=4g: is too large", ""},
		{"srv", "WIREGUARDRUN_NO_REPAIR=x", "WIREGUARDRUN_NO_REPAIR=x: must be yes or no", ""},
		{"--stray=x srv", "", "--stray=x: must be stderr, null, log or file:PATH", ""},
		{"--stray=x.log srv", "", "--stray=x.log: must be", "--stray=file:x.log"},
		{"--stray=file: srv", "", "--stray=file:: needs a path after the colon", ""},
		{"--stray-max=0 srv", "", "--stray-max=0: must be a number", ""},
		{"--stop-timeout=off srv", "", "--stop-timeout=off: must be a time", ""},
		{"--eof-timeout=-1s srv", "", "--eof-timeout=-1s: must be off, or a time", ""},
		{"--keeper=maybe srv", "", "--keeper=maybe: must be yes or no", ""},
		{"srv", "WIREGUARDRUN_WATCH_PARENT=x", "WIREGUARDRUN_WATCH_PARENT=x: must be", ""},
		{"--stdin=x srv", "", "--stdin=x: must be null or lifeline", ""},
		{"--log-level=trace srv", "", "--log-level=trace: must be debug, info", ""},
		{"--log-format=xml srv", "", "--log-format=xml: must be text or json", ""},
		{"--env=A srv", "", "--env=A: must be NAME=VALUE", "inherits"},
		{"--env==x srv", "", "--env==x: must be NAME=VALUE", ""},
		{"--env=WIREGUARDRUN_OUT=1 srv", "", "is set by wireguardrun itself", ""},
		{"--env=wireguardrun_handover=1 srv", "", "is set by wireguardrun itself", ""},

		{"srv", "WIREGUARDRUN_WIRE=x", "WIREGUARDRUN_WIRE=x: must be", ""},
		{"srv", "WIREGUARDRUN_STRAY=/a", "WIREGUARDRUN_STRAY=/a: must be", "file:/a"},
		{"srv", "WIREGUARDRUN_STRAY_MAX=64MB", "WIREGUARDRUN_STRAY_MAX=64MB: must be a number", ""},
		{"srv", "WIREGUARDRUN_STDIN=x", "WIREGUARDRUN_STDIN=x: must be", ""},
		{"--wire=fds srv", "WIREGUARDRUN_LOG_LEVEL=x", "WIREGUARDRUN_LOG_LEVEL=x: must be", ""},
		{"srv", "WIREGUARDRUN_LOG_FORMAT=x", "WIREGUARDRUN_LOG_FORMAT=x: must be", ""},
	}
	for _, test := range tests {
		t.Run(test.line+" "+test.env, func(t *testing.T) {
			cleanEnv(t)
			if name, value, ok := strings.Cut(test.env, "="); ok {
				t.Setenv(name, value)
			}
			var stdout strings.Builder
			inv, err := parse(split(test.line), &stdout)
			if err == nil {
				t.Fatalf("no error, but %+v", inv)
			}
			if !strings.Contains(err.Error(), test.err) || strings.ContainsAny(err.Error(), "\n") {
				t.Errorf("error %q, want one line with %q", err, test.err)
			}
			if hint := hintOf(err); !strings.Contains(hint, test.hint) {
				t.Errorf("hint %q, want %q in it", hint, test.hint)
			}
			if code := exitCode(err); code != 125 {
				t.Errorf("exit code %d, want 125", code)
			}
			if stdout.Len() > 0 {
				t.Errorf("stdout got %q", stdout.String())
			}
		})
	}
}

func TestHelpAndVersion(t *testing.T) {
	cleanEnv(t)
	t.Setenv("WIREGUARDRUN_STRAY", "bogus") // help must not need a sane environment
	versionLine := "wireguardrun " + programVersion() + "\n"
	tests := []struct{ line, want string }{
		{"--help", helpText},
		{"-h", helpText},
		{"-h srv", helpText},
		{"--stray=null --help -- srv", helpText},
		{"--wire=bogus --help", helpText},
		{"--help -- attach", helpText},
		{"run --help", helpText},
		{"attach --help", attachHelp},
		{"attach -h srv", attachHelp},
		{"--help attach", attachHelp},
		{"demo -h", demoHelp},
		{"--help version", versionHelp},
		{"--version", versionLine},
		{"--version srv x", versionLine},
		{"--stray=null --version demo", versionLine},
		{"--help --version", versionLine},
	}
	for _, test := range tests {
		var stdout strings.Builder
		inv, err := parse(split(test.line), &stdout)
		if err != nil || inv.Command != commandNone {
			t.Errorf("%s: command %d, error %v", test.line, inv.Command, err)
		}
		if stdout.String() != test.want {
			t.Errorf("%s: stdout %q, want %q", test.line, stdout.String(), test.want)
		}
	}
}

func TestOutputThatCannotBeWritten(t *testing.T) {
	cleanEnv(t)
	closed, err := os.Create(filepath.Join(t.TempDir(), "f"))
	if err != nil {
		t.Fatal(err)
	}
	if err := closed.Close(); err != nil {
		t.Fatal(err)
	}
	reader, deadPipe, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer deadPipe.Close()
	if err := reader.Close(); err != nil {
		t.Fatal(err)
	}
	outputs := map[string]io.Writer{"closed": closed, "dead pipe": deadPipe, "short": shortWriter{}}
	if full, err := os.OpenFile("/dev/full", os.O_WRONLY, 0); err == nil { // not on every system
		defer full.Close()
		outputs["full"] = full
	}
	for name, output := range outputs {
		for _, arg := range []string{"--help", "--version"} {
			inv, err := parse([]string{arg}, output)
			if err == nil || !strings.Contains(err.Error(), "cannot write to standard output: ") {
				t.Errorf("%s to %s: command %d, error %v", arg, name, inv.Command, err)
			}
			if exitCode(err) != 125 {
				t.Errorf("%s to %s: exit code %d, want 125", arg, name, exitCode(err))
			}
		}
		if err := writeVersion(output); exitCode(err) != 125 {
			t.Errorf("version to %s: error %v", name, err)
		}
	}
}

// shortWriter fails in the middle of a text.
type shortWriter struct{}

func (shortWriter) Write(p []byte) (int, error) { return len(p) / 2, errors.New("no more room") }

func TestParseSize(t *testing.T) {
	tests := []struct {
		text string
		want int64 // 0: an error
	}{
		{"1", 1}, {"4096", 4096}, {"10b", 10}, {"1k", 1 << 10}, {"1K", 1 << 10}, {"2KiB", 2 << 10}, {"2kib", 2 << 10},
		{"3m", 3 << 20}, {"64MiB", 64 << 20}, {"1G", 1 << 30}, {"2GiB", 2 << 30}, {"007k", 7 << 10},
		{"9223372036854775807", 1<<63 - 1}, {"8589934591GiB", 8589934591 << 30},
		{"9223372036854775808", 0}, {"8589934592GiB", 0}, {"99999999999999999999999k", 0},
		{"0", 0}, {"0MiB", 0}, {"", 0}, {"k", 0}, {"-1", 0}, {"+1", 0}, {"1.5M", 0}, {"1 MiB", 0}, {"64MB", 0},
		{"1kb", 0}, {"1T", 0}, {"0x10", 0}, {"1_000", 0}, {"1k1", 0}, {"1é", 0}, {"１", 0},
	}
	for _, test := range tests {
		got, err := parseSize(test.text)
		if got != test.want || (err == nil) != (test.want > 0) {
			t.Errorf("parseSize(%q) = %d, %v, want %d", test.text, got, err, test.want)
		}
	}
}

// modelFlags are the flags of a grammar as kong sees them.
func modelFlags(t *testing.T, grammar any) []*kong.Flag {
	t.Helper()
	k, err := kong.New(grammar, kong.NoDefaultHelp())
	if err != nil {
		t.Fatal(err)
	}
	return k.Model.Flags
}

// Every flag is in the help and, but for three, in the environment, under a
// name that has no other meaning there.
func TestFlagsAreDocumentedAndInTheEnvironment(t *testing.T) {
	taken := []string{"in", "out", "handover", "run", "off"}
	notInEnvironment := []string{"env", "help", "version"}
	seen := 0
	for _, flag := range modelFlags(t, new(flags)) {
		seen++
		if slices.Contains(taken, flag.Name) {
			t.Errorf("--%s: %s has another meaning", flag.Name, variable(flag.Name))
		}
		if !regexp.MustCompile("--" + flag.Name + `(=|  |\[=)`).MatchString(helpText) {
			t.Errorf("--%s is not in the help", flag.Name)
		}
		if slices.Contains(notInEnvironment, flag.Name) || flag.Name == "cwd" || flag.Name == "summary" { // any value is taken; see TestParseEnvironment
			continue
		}
		t.Run(flag.Name, func(t *testing.T) {
			cleanEnv(t)
			name := "WIREGUARDRUN_" + strings.ToUpper(strings.ReplaceAll(flag.Name, "-", "_"))
			t.Setenv(name, "bogus")
			if _, err := parse([]string{"srv"}, io.Discard); err == nil || !strings.HasPrefix(err.Error(), name+"=bogus: ") {
				t.Errorf("%s=bogus: error %v", name, err)
			}
		})
	}
	if seen < 10 {
		t.Errorf("only %d flags", seen)
	}
	for _, flag := range modelFlags(t, new(fewFlags)) {
		for _, help := range []string{attachHelp, demoHelp} {
			if !strings.Contains(help, "--"+flag.Name) {
				t.Errorf("--%s is not in %q", flag.Name, help)
			}
		}
	}
	for _, text := range []string{helpText, attachHelp, demoHelp, versionHelp} {
		for line := range strings.Lines(text) {
			if len(line) > 81 || strings.TrimRight(line, " \n") != strings.TrimRight(line, "\n") {
				t.Errorf("help line too long, or space at its end: %q", line)
			}
		}
	}
}

// What has a value in one word needs no kong, which would find the same, with
// whatever it stands beside.
func TestPlainFlags(t *testing.T) {
	words := []string{"", "-", "--", "---", "-h", "--help", "--no-repair", "--no-repair=1", "--summary", "--summary=x",
		"--env=A=1", "--wire", "--wire=", "--wire==", "--Wire=fds", "--wir=fds", "-wire=fds", "--=fds", "fds", "--no-wire=fds",
		"--wire=fds", "--wire=-x", "--wire=--", "--wire=a=b", "--wire=a b", "--wire=\"a\"", "--wire=\xff", "--wire=a,b", "--wire=${x}", "--help=false"}
	for _, flag := range modelFlags(t, &flags{}) {
		if _, ok := flag.Target.Addr().Interface().(*word); !ok {
			continue
		}
		given := "--" + flag.Name + "=é"
		var f flags
		if !plain([]string{given, given}, &f.Tail, new(config).valued(&f)) {
			t.Errorf("%s is left to kong", given)
		}
		words = append(words, given)
	}
	for _, one := range words {
		sameByKong(t, []string{one})
		for _, other := range words {
			sameByKong(t, []string{one, other})
			sameByKong(t, []string{"--stray=null", one, other, "--stray=log"})
		}
	}
}

// sameByKong checks that the way around kong finds what kong would.
func sameByKong(t *testing.T, args []string) {
	t.Helper()
	var quick, slow flags
	err1, err2 := quick.decode(args), trace(args, &slow)
	if (err1 == nil) != (err2 == nil) || err1 == nil && !reflect.DeepEqual(quick, slow) {
		t.Errorf("%q: %+v (%v), by kong %+v (%v)", args, quick, err1, slow, err2)
	}
}

// FuzzParse: no command line makes parse panic, what it says is the server's is
// a tail of what was given, and the way around kong finds what kong would.
func FuzzParse(f *testing.F) {
	for _, line := range []string{"srv", "--\nsrv", "demo\nx", "run\n--\nrun", "-\nx", "\n--", "--cwd\nx\nsrv\n--\n-h",
		"--env=A=1\nattach\n-h", "-hé\n\xff", "---", "-h=1\n--=", "--wire=fds\n--wire=\n--stray=log\nsrv", "--stray-max=9é\nsrv", "--help=\nsrv"} {
		f.Add(line)
	}
	f.Fuzz(func(t *testing.T, line string) {
		args := strings.Split(line, "\n")
		inv, err := parse(args, io.Discard)
		if err == nil {
			n := len(args) - len(inv.Config.Argv)
			if n < 0 || !slices.Equal(args[n:], inv.Config.Argv) {
				t.Errorf("%q: argv %q", args, inv.Config.Argv)
			}
		}
		sameByKong(t, args)
	})
}

func BenchmarkParse(b *testing.B) {
	cleanEnv(b)
	for name, args := range map[string][]string{
		"bare":   {"--", "node", "server.js", "--port", "3"},
		"flags":  {"--stray=null", "--cwd", "/tmp", "--", "node", "server.js", "--port", "3"},
		"attach": {"attach", "--", "node", "server.js"},
	} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if _, err := parse(args, io.Discard); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
