package main

import (
	"context"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/rs/zerolog"

	"github.com/wireguardrun/wireguardrun/internal/demo"
	"github.com/wireguardrun/wireguardrun/internal/pipes"
	"github.com/wireguardrun/wireguardrun/internal/proc"
)

// run is the program: argv in, exit code out.
func run(argv []string) int {
	if len(argv) > 1 && argv[0] == proc.ListenStage {
		// The flags, which say how to report, were read before this stage.
		return report(newSay(stderrWriter{}, zerolog.InfoLevel, formatText), launchFailure(argv[1], argv[1], "", proc.RunListenStage(argv)))
	}
	if len(argv) > 1 && argv[0] == proc.KeeperStage {
		proc.RunKeeper(argv)
		return 0
	}
	if len(argv) > 0 {
		argv = argv[1:]
	}
	if code, ok := demoRole(argv); ok {
		return code
	}
	inv, err := parse(argv, os.Stdout)
	if err != nil {
		return report(newSay(stderrWriter{}, zerolog.InfoLevel, formatAsked(argv)), err)
	}
	cfg := inv.Config
	switch inv.Command {
	case commandRun:
		if cfg.Off {
			return become(cfg)
		}
		return guarded(cfg)
	case commandAttach:
		return attach(cfg)
	case commandDemo:
		return report(configuredSay(cfg), runDemo())
	case commandVersion:
		return report(configuredSay(cfg), writeVersion(os.Stdout))
	default: // what was asked for has been written
		return 0
	}
}

// report says err, if there is one, and returns its exit code.
func report(s *say, err error) int {
	if err != nil {
		s.fail(err)
	}
	return exitCode(err)
}

// formatAsked looks for the format in a command line that could not be read:
// which words are commands, or values of other flags, is not known.
func formatAsked(argv []string) logFormat {
	asked := os.Getenv(variable("log-format"))
	for i, word := range argv {
		if word == "--" {
			break
		}
		if value, ok := strings.CutPrefix(word, "--log-format="); ok {
			asked = value
		} else if word == "--log-format" && i+1 < len(argv) {
			asked = argv[i+1]
		}
	}
	if asked == "json" {
		return formatJSON
	}
	return formatText
}

func configuredSay(cfg config) *say { return newSay(stderrWriter{}, cfg.LogLevel, cfg.LogFormat) }

// stderrWriter writes to descriptor 2 itself, without a queue: a reader that is
// gone gives an error and no SIGPIPE, one that does not read is not waited for.
type stderrWriter struct{}

func (stderrWriter) Write(p []byte) (int, error) {
	conn := pipes.NewConn(pipes.Standard(2))
	giveUp := func() { conn.Retire(nil) }
	defer time.AfterFunc(flushLimit, giveUp).Stop()
	defer giveUp()
	return conn.Write(p)
}

// demoRole plays a part of the demo when the hidden flag asks for one.
func demoRole(argv []string) (code int, ok bool) {
	if len(argv) != 2 || argv[0] != "demo" {
		return 0, false
	}
	role, hidden := strings.CutPrefix(argv[1], "--role=")
	if !hidden {
		return 0, false
	}
	return demo.Role(role)
}

func runDemo() error {
	self, err := os.Executable()
	if err != nil {
		return fmt.Errorf("find our own program: %w", err)
	}
	defer catchPipeSignal()()
	return demo.Run(context.Background(), self, os.Stdout, os.Stderr)
}

// become makes this process the command of cfg, as if we were not there.
func become(cfg config) int {
	failed := func(err error) int { return report(configuredSay(cfg), err) }
	c, err := resolve(cfg, os.Environ())
	if err != nil {
		return failed(err)
	}
	if c.Dir != "" {
		if err := os.Chdir(c.Dir); err != nil {
			return failed(err)
		}
	}
	status, err := proc.Become(c)
	if err != nil {
		return failed(launchFailure(c.Args[0], c.Path, proc.Getenv(c.Env, "PATH"), err))
	}
	return childExitCode(status.Code, status.Signal)
}

// resolve finds what cfg asks to run, in the environment base.
func resolve(cfg config, base []string) (proc.Command, error) {
	env := proc.Environ(base, cfg.Env)
	c := proc.Command{Args: cfg.Argv, Dir: cfg.Dir, Env: env, Terminal: pipes.None}
	name := cfg.Argv[0]
	if cfg.Dir != "" {
		if err := proc.CheckDir(cfg.Dir); err != nil {
			return c, launchFailure(name, "", "", err)
		}
	}
	path, err := proc.Look(name, cfg.Dir, env)
	if err != nil {
		return c, launchFailure(name, "", proc.Getenv(env, "PATH"), err)
	}
	c.Path = path
	return c, nil
}
