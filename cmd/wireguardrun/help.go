package main

// helpFor is the help of a command that was named.
func helpFor(cmd command) string {
	switch cmd {
	case commandAttach:
		return attachHelp
	case commandDemo:
		return demoHelp
	case commandVersion:
		return versionHelp
	}
	return helpText
}

const helpText = `wireguardrun runs a server that talks over stdin and stdout, and lets nothing
but protocol messages through to the client. What the server prints otherwise
goes elsewhere. It has nothing to do with the WireGuard VPN.

Usage:
  wireguardrun [flags] [--] command [args]         run a server
  wireguardrun attach [flags] [--] command [args]  the same in a launcher script
  wireguardrun demo                                see a noisy server tamed
  wireguardrun version                             show the version

The first word that is no flag is the command; it and all that follows are the
server's and are passed on as they are. After "--" a word is never one of the
commands above: "wireguardrun -- demo" runs a program called demo.

Flags:
  --wire=auto          how the server gets the wire. stdio: on its stdin and
                       stdout, of which only frames come through; fds: on two
                       descriptors of its own, 3 and 4 unless they are taken,
                       whose numbers are in WIREGUARDRUN_IN and
                       WIREGUARDRUN_OUT, at no cost; auto: on both, until it
                       shows which it uses
  --framing=auto       how frames look: jsonrpc or json (one a line), headers
                       (LSP, DAP), raw (not looked at), or as the client's own
  --glued=pass         frames with noise on their line: pass or divert
  --no-repair          divert frames that would need a repair
  --strict-ids         divert responses that nobody has asked for
  --max-frame=64MiB    longest frame that passes
  --stray=stderr       where stray output goes: stderr, null, log (each line
                       becomes a log line) or file:PATH (appended)
  --stray-max=64MiB    size at which that file is rotated; one old file is kept
  --stdin=lifeline     the standard input of a server that has the wire on
                       descriptors of its own: lifeline, which stays open and
                       never has data, for servers that quit when their standard
                       input ends; or null, the default with --wire=fds
  --summary[=FILE]     at the end, write what has passed, was diverted or was
                       put right, as one JSON object, to stderr, or appended to
                       FILE
  --cwd=DIR            start the server in DIR
  --stop-timeout=5s    how long a server that was asked to end, since its client
                       is gone, has before it is killed
  --eof-timeout=off    ask the server to end some time after the end of its
                       input, such as 30s; off is never
  --watch-parent=yes   whether the end of the process that started us may be
                       the client's: yes or no
  --keeper=yes         a small second process ends the server if wireguardrun is
                       killed: yes or no
  --env=NAME=VALUE     set a variable for the server; may be repeated
  --log-level=info     how much to say on stderr: debug, info, warn, error, off
  --log-format=text    text, or json: one object on each line
  -h, --help           show this text, or that of a command: attach --help
  --version            show the version

A flag with a value, except --env, may also be given in the environment:
--stray-max is WIREGUARDRUN_STRAY_MAX. A flag on the command line comes first.
WIREGUARDRUN_OFF=1 runs the command bare, without any guard.

Exit status: the server's own, or 128 plus the number of the signal that ended
it; 127 if the command is not found, 126 if it cannot be executed, 125 if
wireguardrun itself fails or is used wrongly.

Examples:
  wireguardrun -- node server.js
  wireguardrun --stray=file:stray.log -- python -m server --verbose
`

const attachHelp = `Usage: wireguardrun attach [flags] [--] command [args]

For launcher scripts that wireguardrun runs: takes the wire that was handed to
the script, puts it on stdin and stdout, and becomes command.

Flags:
  --log-level=info     how much to say on stderr: debug, info, warn, error, off
  --log-format=text    text, or json: one object on each line
  -h, --help           show this text

Example, as the last line of a script:
  exec wireguardrun attach -- node server.js
which is run by:
  wireguardrun --wire=fds -- sh script.sh
`

const demoHelp = `Usage: wireguardrun demo [flags]

Runs a small noisy server twice, bare and behind wireguardrun, and shows what
the client receives. Exit status 0 means that the guarded wire was clean.

Flags:
  --log-level=info     how much to say on stderr: debug, info, warn, error, off
  --log-format=text    text, or json: one object on each line
  -h, --help           show this text
`

const versionHelp = `Usage: wireguardrun version

Shows the version, like --version.
`
