package main

import (
	"errors"
	"fmt"
	"os"

	"github.com/wireguardrun/wireguardrun/internal/handover"
	"github.com/wireguardrun/wireguardrun/internal/pipes"
	"github.com/wireguardrun/wireguardrun/internal/proc"
)

// attach runs inside a guarded launcher: it puts the handed-down wire back on
// descriptors 0 and 1 and becomes the server.
func attach(cfg config) int {
	if err := putBack(cfg.Off); err != nil {
		return report(configuredSay(cfg), err)
	}
	return become(cfg)
}

// putBack does nothing if the guard is off and there is no wire to put back.
func putBack(off bool) error {
	rec, found, err := handover.FromEnv()
	switch {
	case !found && off:
		return nil
	case !found:
		hint := "use it inside a launcher script: wireguardrun -- sh start.sh, and in start.sh: exec wireguardrun attach -- server"
		if os.Getenv(proc.EnvRun) != "" {
			hint = "with --wire=stdio leave attach out, since stdin and stdout are the wire; else the variables WIREGUARDRUN_... are lost on the way, or by an attach before"
		}
		return withHint(errors.New("attach: no wire was handed down to this process"), hint)
	case err != nil:
		return withHint(fmt.Errorf("attach: %w", err), "use one version of wireguardrun for both")
	}
	handover.Clear()
	stdin, stdout := pipes.Standard(0), pipes.Standard(1)
	if err := rec.Check(stdin, stdout); err != nil {
		// In auto 0 and 1 carry the wire too. Whoever has replaced both has
		// a session of its own; one alone was redirected by mistake.
		if rec.Mode == handover.Auto && rec.Stdin.Is(stdin) == rec.Stdout.Is(stdout) {
			return nil
		}
		return withHint(fmt.Errorf("attach: %w", err),
			"a launcher in between lost or reused the descriptors, or redirected stdin or stdout; attach before it does")
	}
	if rec.Mode == handover.Auto {
		// The one byte that tells the parent which pair is in use.
		announce := pipes.NewConn(rec.Out.Handle)
		_, err := announce.Write([]byte("\n"))
		announce.Retire(nil)
		if err != nil {
			return fmt.Errorf("attach: announce the server on descriptor %d: %w", rec.Out.Number, err)
		}
	}
	if err := rec.PutOnStandard(); err != nil {
		return fmt.Errorf("attach: %w", err)
	}
	return nil
}
