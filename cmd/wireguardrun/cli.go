package main

import (
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"os/signal"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/alecthomas/kong"
	"github.com/rs/zerolog"

	"github.com/wireguardrun/wireguardrun/internal/pipes/frame"
)

// command is what one call of the program is asked to do.
type command uint8

const (
	commandNone    command = iota // --help or --version has been written: exit with 0
	commandRun                    // run config.Argv behind the guard
	commandAttach                 // put the handed wire back on 0 and 1, then exec config.Argv
	commandDemo                   // show a noisy server bare and guarded
	commandVersion                // write the version to stdout
)

// commandNamed is the command that a word names when it comes first and not
// after "--". A server with one of these names is reached by "--" or by "run".
func commandNamed(word string) command {
	switch word {
	case "run":
		return commandRun
	case "attach":
		return commandAttach
	case "demo":
		return commandDemo
	case "version":
		return commandVersion
	}
	return commandNone
}

// wireMode is how the server gets the wire: the values of --wire.
type wireMode string

const (
	wireAuto  wireMode = "auto"  // on its 0 and 1 and on the extra pair, until it shows which it uses
	wireFds   wireMode = "fds"   // the client's own descriptors, on the extra pair
	wireStdio wireMode = "stdio" // on its 0 and 1, through the relay
)

// strayTarget is where output of the server that is not on the wire goes.
type strayTarget uint8

const (
	strayStderr strayTarget = iota // our stderr, unchanged
	strayNull                      // nowhere
	strayLog                       // one log event for each line
	strayFile                      // config.StrayFile
)

// stdinKind is what the standard input is of a server that has the wire on
// descriptors of its own.
type stdinKind uint8

const (
	stdinUsual    stdinKind = iota // null with --wire=fds, else a lifeline
	stdinNull                      // the null device, or at its end once the server shows that it is aware
	stdinLifeline                  // an open pipe without data
)

// config holds every setting of one call, defaults filled in. For attach,
// demo and version only the log settings, Off and (attach) Argv mean anything.
type config struct {
	Wire      wireMode
	Frame     frame.Options
	Stray     strayTarget
	StrayFile string // path for strayFile, as given: relative to our directory, not to Dir
	StrayMax  int64  // bytes in StrayFile before it is rotated; at least 1
	Stdin     stdinKind
	Summary   string   // path to which a summary is appended at the end; "stderr" is ours, "" is none
	Dir       string   // the server's working directory; "" is ours. Not checked by parse
	Env       []string // NAME=VALUE, in the order given; the last one of a name wins

	StopTimeout time.Duration // from the request to end to the kill
	EOFTimeout  time.Duration // from the end of the input to the request to end; 0 is for ever
	WatchParent bool          // our parent's end may be the client's
	Keeper      bool          // a second process ends the tree if we are killed

	// Idle are the flags of the command line, "--glued" for one, that have no
	// effect beside the others.
	Idle []string

	LogLevel  zerolog.Level
	LogFormat logFormat
	Off       bool     // WIREGUARDRUN_OFF: exec Argv bare
	Argv      []string // the server's command: a part of the args given to parse, byte for byte
}

// invocation is a parsed command line.
type invocation struct {
	Command command
	Config  config
}

// word is the value of a flag. It decodes itself because kong's own decoder
// passes strings through JSON, which replaces bytes that are no UTF-8, and
// paths may hold such bytes. No flag has a use for an empty value, so "" also
// means that the flag was not given.
type word string

// Decode implements kong.MapperValue.
func (w *word) Decode(ctx *kong.DecodeContext) error {
	token := ctx.Scan.Pop()
	value := token.String()
	if !token.IsValue() || value == "" {
		return errors.New("needs a value")
	}
	*w = word(value)
	return nil
}

// place is the value of a flag that may stand alone, which means stderr. A value
// of its own has to follow a "=".
type place string

// IsBool implements kong.BoolMapperValue: the next argument is no value.
func (*place) IsBool() bool { return true }

// Decode implements kong.MapperValue.
func (p *place) Decode(ctx *kong.DecodeContext) error {
	if ctx.Scan.Peek().Type != kong.FlagValueToken {
		*p = onStderr
		return nil
	}
	var value word
	err := value.Decode(ctx)
	*p = place(value)
	return err
}

// onStderr is a place that is no file.
const onStderr = "stderr"

// words is the value of a flag that may be given more than once.
type words []string

// Decode implements kong.MapperValue.
func (w *words) Decode(ctx *kong.DecodeContext) error {
	var one word
	if err := one.Decode(ctx); err != nil {
		return err
	}
	*w = append(*w, string(one))
	return nil
}

// tail counts the arguments from the first word that is no flag of ours to the
// end. Only the number is taken from kong: the arguments themselves are then
// cut from the original list, so that they stay what they were.
type tail int

// Decode implements kong.MapperValue.
//
//nolint:unparam // the interface has the error
func (t *tail) Decode(ctx *kong.DecodeContext) error {
	for ; !ctx.Scan.Peek().IsEOL(); ctx.Scan.Pop() {
		*t++
	}
	return nil
}

// commonFlags are the flags of every command.
type commonFlags struct {
	LogLevel  word `name:"log-level"`
	LogFormat word `name:"log-format"`
	Help      bool `name:"help" short:"h"`
}

// flags is the grammar of run and of the top level. It has no help texts: kong
// looks for variables in them, by a regular expression, at every start, which
// doubles its work. A test keeps the texts below and the grammar in step.
//
// "partial" makes kong stop at the first word and refuse a flag that it does
// not know; plain passthrough would take such a flag for the server's command.
type flags struct {
	commonFlags
	Version bool `name:"version"`
	Wire    word `name:"wire"`

	Framing   word `name:"framing"`
	Glued     word `name:"glued"`
	NoRepair  bool `name:"no-repair"`
	StrictIDs bool `name:"strict-ids"`
	MaxFrame  word `name:"max-frame"`

	Stray    word  `name:"stray"`
	StrayMax word  `name:"stray-max"`
	Stdin    word  `name:"stdin"`
	Summary  place `name:"summary"`
	Cwd      word  `name:"cwd"`
	Env      words `name:"env"`

	StopTimeout word `name:"stop-timeout"`
	EOFTimeout  word `name:"eof-timeout"`
	WatchParent word `name:"watch-parent"`
	Keeper      word `name:"keeper"`

	Tail tail `arg:"" optional:"" passthrough:"partial"`
}

// fewFlags is the grammar of attach, demo and version.
type fewFlags struct {
	commonFlags
	Tail tail `arg:"" optional:"" passthrough:"partial"`
}

// parse reads the command line (without the program's name) and the
// environment. Requested help and version texts are written to stdout; nothing
// else is, and errors are returned, not printed. Every error is a usage error
// or a failed write: its exit code is 125.
func parse(args []string, stdout io.Writer) (invocation, error) {
	var given flags
	if err := given.decode(args); err != nil {
		return invocation{}, err
	}
	// The version is asked for at the top level only. It is answered first
	// since no other flag changes it.
	if given.Version {
		return invocation{}, writeVersion(stdout)
	}
	own, rest := cut(args, given.Tail)
	if len(rest) > 0 && rest[0] != "--" {
		if named := commandNamed(rest[0]); named != commandNone {
			// Flags may stand on both sides of a command's name. Without the
			// name the line is one list of flags in the command's grammar.
			return parseNamed(named, rest[0], slices.Concat(own, rest[1:]), stdout)
		}
	}
	if given.Help {
		return invocation{}, write(stdout, helpText)
	}
	return settle(commandRun, given, rest)
}

// parseNamed is parse for the arguments of a command that was named. A word
// among args is never a command of ours again.
func parseNamed(cmd command, name string, args []string, stdout io.Writer) (invocation, error) {
	var given flags
	var err error
	if cmd == commandRun {
		err = given.decode(args)
	} else {
		var few fewFlags
		err = decode(args, &few, &few.Tail, nil)
		given.commonFlags, given.Tail = few.commonFlags, few.Tail
	}
	if err != nil {
		return invocation{}, withHint(fmt.Errorf("%s: %w", name, err),
			fmt.Sprintf(`see "wireguardrun %s --help"`, name))
	}
	_, rest := cut(args, given.Tail)
	if given.Help {
		return invocation{}, write(stdout, helpFor(cmd))
	}
	if len(rest) > 0 && (cmd == commandDemo || cmd == commandVersion) {
		return invocation{}, withHint(
			fmt.Errorf("%s takes no arguments, but got %q", name, rest[0]),
			fmt.Sprintf(`to run a server called %s: wireguardrun -- %s ...`, name, name))
	}
	return settle(cmd, given, rest)
}

// decode reads the flags at the start of args.
func (f *flags) decode(args []string) error {
	return decode(args, f, &f.Tail, new(config).valued(f))
}

// decode reads the flags at the start of args into grammar, a pointer to one of
// the grammars, and sets *count to the number of arguments after them. A "--"
// that ends the flags is counted. The flags in valued are grammar's own.
func decode(args []string, grammar any, count *tail, valued []setting) error {
	if plain(args, count, valued) {
		return nil
	}
	if err := trace(args, grammar); err != nil {
		return withHint(err, `see "wireguardrun --help"; a server's own flags come after its name`)
	}
	return nil
}

// plain is decode for what most clients' configurations have: no flag of ours,
// or only such as --wire=fds. Kong finds the same, as a test sees to, but to
// build its model takes many times as long as the rest of parse. The result is
// false, and kong is to be asked, at the first argument of any other form.
func plain(args []string, count *tail, valued []setting) bool {
	for i, arg := range args {
		if arg == "--" || arg == "-" || !strings.HasPrefix(arg, "-") {
			*count = tail(len(args) - i)
			return true
		}
		name, value, _ := strings.Cut(arg, "=")
		at := slices.IndexFunc(valued, func(s setting) bool { return "--"+s.name == name })
		if at < 0 || value == "" {
			return false
		}
		*valued[at].flag = word(value)
	}
	return true
}

// trace is decode by kong, whatever args start with.
func trace(args []string, grammar any) error {
	// Trace and Apply are the parsing alone. Kong's Parse adds defaults,
	// variables and hooks, which are settled here without reflection, and it
	// may print.
	ctx, err := kong.Trace(kong.Must(grammar, kong.NoDefaultHelp()), args)
	if err != nil {
		return err
	}
	if ctx.Error != nil {
		return ctx.Error
	}
	_, err = ctx.Apply()
	return err
}

// cut divides args before the last n.
func cut(args []string, n tail) (before, after []string) {
	at := len(args) - int(n)
	return args[:at], args[at:]
}

// settle makes the invocation of a command that starts something: flags first,
// then the environment, then defaults.
func settle(cmd command, given flags, argv []string) (invocation, error) {
	inv := invocation{Command: cmd, Config: config{
		Wire:      wireAuto,
		Frame:     frame.Options{MaxFrame: 64 << 20, Repair: true, Glued: true},
		StrayMax:  64 << 20,
		LogLevel:  zerolog.InfoLevel,
		LogFormat: formatText,
		Off:       isOn(os.Getenv(variable("off"))),

		StopTimeout: 5 * time.Second,
		WatchParent: true,
		Keeper:      true,
	}}
	c := &inv.Config

	var noRepair bool
	noRepairFlag, strictIDsFlag := onOff(given.NoRepair), onOff(given.StrictIDs)
	settings := c.valued(&given)
	if cmd == commandRun {
		settings = append(settings,
			setting{"no-repair", &noRepairFlag, switchTo(&noRepair)},
			setting{"strict-ids", &strictIDsFlag, switchTo(&c.Frame.StrictIDs)},
			setting{"summary", (*word)(&given.Summary), c.setSummary},
		)
	} else {
		settings = settings[:2] // the other commands have, and read, only these
	}
	for _, s := range settings {
		if err := s.apply(); err != nil {
			return invocation{}, err
		}
	}
	c.Frame.Repair = !noRepair
	for _, s := range settings {
		if c.Wire == wireFds && *s.flag != "" && slices.Contains(relayFlags, s.name) {
			c.Idle = append(c.Idle, "--"+s.name)
		}
	}
	for _, pair := range given.Env {
		if err := c.addEnv(pair); err != nil {
			return invocation{}, fmt.Errorf("--env=%s: %w", pair, err)
		}
	}

	if cmd == commandRun || cmd == commandAttach {
		if len(argv) > 0 && argv[0] == "--" {
			argv = argv[1:]
		}
		self := "wireguardrun"
		if cmd == commandAttach {
			self += " attach"
		}
		example := self + " -- node server.js"
		if len(argv) == 0 {
			return invocation{}, withHint(errors.New("no command to run"),
				"name the server to start: "+example+"   (all flags: "+self+" --help)")
		}
		if argv[0] == "" {
			return invocation{}, withHint(errors.New("the command to run is an empty word"),
				"is a variable unset? Name the server to start: "+example)
		}
		c.Argv = argv
	}
	return inv, nil
}

// relayFlags say what a relay does with messages.
var relayFlags = []string{"framing", "glued", "no-repair", "strict-ids", "max-frame"}

// setting is a flag that the environment may also give.
type setting struct {
	name string
	flag *word // as given; "" if it was not
	set  func(string) error
}

// valued lists the settings whose flag always has a value: those of every
// command first.
func (c *config) valued(given *flags) []setting {
	return []setting{
		{"log-level", &given.LogLevel, c.setLogLevel},
		{"log-format", &given.LogFormat, eitherTo(&c.LogFormat, "text", formatText, "json", formatJSON)},
		{"wire", &given.Wire, c.setWire},
		{"framing", &given.Framing, c.setFraming},
		{"glued", &given.Glued, eitherTo(&c.Frame.Glued, "pass", true, "divert", false)},
		{"max-frame", &given.MaxFrame, c.setMaxFrame},
		{"stray", &given.Stray, c.setStray},
		{"stray-max", &given.StrayMax, c.setStrayMax},
		{"stdin", &given.Stdin, eitherTo(&c.Stdin, "null", stdinNull, "lifeline", stdinLifeline)},
		{"cwd", &given.Cwd, textTo(&c.Dir)},
		{"stop-timeout", &given.StopTimeout, durationTo(&c.StopTimeout)},
		{"eof-timeout", &given.EOFTimeout, durationOrOffTo(&c.EOFTimeout)},
		{"watch-parent", &given.WatchParent, switchTo(&c.WatchParent)},
		{"keeper", &given.Keeper, switchTo(&c.Keeper)},
	}
}

// apply sets the value that the flag or, if it was not given, the environment
// has. An empty variable counts as unset.
func (s setting) apply() error {
	origin, value := "--"+s.name, string(*s.flag)
	if value == "" {
		origin = variable(s.name)
		value = os.Getenv(origin)
	}
	if value == "" {
		return nil
	}
	if err := s.set(value); err != nil {
		return fmt.Errorf("%s=%s: %w", origin, value, err)
	}
	return nil
}

// variable is the name of the environment variable for a flag.
func variable(flag string) string {
	return "WIREGUARDRUN_" + strings.ToUpper(strings.ReplaceAll(flag, "-", "_"))
}

// onOff is the value of a flag that has none.
func onOff(given bool) word {
	if given {
		return "on"
	}
	return ""
}

// isOn reads the variable that switches the guard off.
func isOn(value string) bool {
	switch strings.ToLower(value) {
	case "", "0", "false", "no", "off":
		return false
	}
	return true
}

func (c *config) setLogLevel(value string) error {
	switch value {
	case "debug":
		c.LogLevel = zerolog.DebugLevel
	case "info":
		c.LogLevel = zerolog.InfoLevel
	case "warn":
		c.LogLevel = zerolog.WarnLevel
	case "error":
		c.LogLevel = zerolog.ErrorLevel
	case "off":
		c.LogLevel = zerolog.Disabled
	default:
		return errors.New("must be debug, info, warn, error or off")
	}
	return nil
}

// eitherTo sets a to the first or the second value by the name that is given.
func eitherTo[T any](to *T, first string, one T, second string, other T) func(string) error {
	return func(value string) error {
		switch value {
		case first:
			*to = one
		case second:
			*to = other
		default:
			return fmt.Errorf("must be %s or %s", first, second)
		}
		return nil
	}
}

func (c *config) setWire(value string) error {
	switch mode := wireMode(value); mode {
	case wireAuto, wireFds, wireStdio:
		c.Wire = mode
		return nil
	}
	return errors.New("must be auto, fds or stdio")
}

func (c *config) setFraming(value string) (err error) {
	c.Frame.Framing, err = frame.ParseFraming(value)
	return err
}

func (c *config) setMaxFrame(value string) error {
	size, err := parseSize(value)
	if err != nil {
		return err
	}
	if size > math.MaxInt32 {
		return errors.New("is too large")
	}
	c.Frame.MaxFrame = int(size)
	return nil
}

func (c *config) setStray(value string) error {
	path, isFile := strings.CutPrefix(value, "file:")
	switch {
	case value == "stderr":
		c.Stray = strayStderr
	case value == "null":
		c.Stray = strayNull
	case value == "log":
		c.Stray = strayLog
	case isFile && path != "":
		c.Stray, c.StrayFile = strayFile, path
	case isFile:
		return errors.New("needs a path after the colon")
	default:
		err := errors.New("must be stderr, null, log or file:PATH")
		if strings.ContainsAny(value, `./\`) {
			return withHint(err, "to append to that file: --stray=file:"+value)
		}
		return err
	}
	return nil
}

func (c *config) setStrayMax(value string) error {
	size, err := parseSize(value)
	if err != nil {
		return err
	}
	c.StrayMax = size
	return nil
}

// setSummary takes a path, or a word that switches the summary on or off.
func (c *config) setSummary(value string) error {
	var on bool
	switch {
	case switchTo(&on)(value) != nil:
		c.Summary = value
	case on:
		c.Summary = onStderr
	default:
		c.Summary = ""
	}
	return nil
}

// textTo sets a text, of which any will do.
func textTo(to *string) func(string) error {
	return func(value string) error {
		*to = value
		return nil
	}
}

// durationTo sets a time such as 1.5s or 2m.
func durationTo(to *time.Duration) func(string) error {
	return func(value string) error {
		d, err := time.ParseDuration(value)
		if err != nil || d <= 0 {
			return errors.New("must be a time above 0 such as 500ms, 5s or 2m")
		}
		*to = d
		return nil
	}
}

// durationOrOffTo is durationTo for a time that may be off, which is 0.
func durationOrOffTo(to *time.Duration) func(string) error {
	return func(value string) error {
		if value == "off" {
			*to = 0
			return nil
		}
		if durationTo(to)(value) != nil {
			return errors.New("must be off, or a time above 0 such as 500ms, 5s or 2m")
		}
		return nil
	}
}

// switchTo sets a setting that is on or off.
func switchTo(to *bool) func(string) error {
	return func(value string) error {
		switch strings.ToLower(value) {
		case "yes", "1", "true", "on":
			*to = true
		case "no", "0", "false", "off":
			*to = false
		default:
			return errors.New("must be yes or no")
		}
		return nil
	}
}

// addEnv takes NAME=VALUE for the server's environment.
func (c *config) addEnv(pair string) error {
	name, _, ok := strings.Cut(pair, "=")
	if !ok || name == "" {
		return withHint(errors.New("must be NAME=VALUE"),
			"variables that are already set need no flag: the server inherits them")
	}
	// Names in the environment have no case on Windows.
	for _, own := range []string{"in", "out", "handover", "run"} {
		if strings.EqualFold(name, variable(own)) {
			return errors.New("is set by wireguardrun itself")
		}
	}
	c.Env = append(c.Env, pair)
	return nil
}

// parseSize reads a number of bytes, at least 1, with an optional unit of a
// power of 1024. Upper and lower case mean the same. KB and its like are
// refused: some mean 1000 by them.
func parseSize(text string) (int64, error) {
	digits := strings.TrimRightFunc(text, func(r rune) bool { return r < '0' || r > '9' })
	var unit int64
	switch strings.ToLower(text[len(digits):]) {
	case "", "b":
		unit = 1
	case "k", "kib":
		unit = 1 << 10
	case "m", "mib":
		unit = 1 << 20
	case "g", "gib":
		unit = 1 << 30
	}
	number, err := strconv.ParseUint(digits, 10, 63)
	switch {
	case errors.Is(err, strconv.ErrRange), err == nil && unit > 0 && int64(number) > math.MaxInt64/unit:
		return 0, errors.New("is too large")
	case err != nil || unit == 0 || number == 0:
		return 0, errors.New("must be a number of bytes above 0, alone or with k, KiB, MiB or GiB after it")
	}
	return int64(number) * unit, nil
}

// write puts a text that was asked for on stdout.
func write(stdout io.Writer, text string) error {
	defer catchPipeSignal()()
	if _, err := io.WriteString(stdout, text); err != nil {
		return fmt.Errorf("cannot write to standard output: %w", err)
	}
	return nil
}

// catchPipeSignal makes a write to a pipe that nobody reads return an error.
// Without it Go ends the program by SIGPIPE, and with no word, when that pipe is
// descriptor 1 or 2. The result is to be called afterwards.
func catchPipeSignal() (undo func()) {
	caught := make(chan os.Signal, 1)
	signal.Notify(caught, syscall.SIGPIPE)
	return func() { signal.Stop(caught) }
}
