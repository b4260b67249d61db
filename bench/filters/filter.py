"""Runs a server and lets only its JSON messages through to stdout."""
import json
import subprocess
import sys


def is_message(line):
    try:
        message = json.loads(line)
    except ValueError:
        return False
    return isinstance(message, dict) and message.get("jsonrpc") == "2.0"


def main():
    server = subprocess.Popen(sys.argv[1:], stdout=subprocess.PIPE)
    for line in server.stdout:
        if is_message(line):
            sys.stdout.buffer.write(line)
            sys.stdout.buffer.flush()
        else:
            sys.stderr.buffer.write(line)
            sys.stderr.buffer.flush()
    return server.wait()


if __name__ == "__main__":
    sys.exit(main())
