"""A noisy MCP server on the Python SDK.

Nothing that it or its children print reaches the client, because its transport
is on the two descriptors that wireguardrun hands down:

    wireguardrun -- python server.py

Without them it serves on standard input and output, which the SDK (since its
version 2) keeps clean for as long as it serves: what is printed before that is
on the wire, and so is, after it, what is printed or was left in a buffer.
launcher.sh shows how far that goes under wireguardrun.

A launcher in Python loses the descriptors, since subprocess closes them, unless
it gives them on by pass_fds=(3, 4). Behind it the server uses standard input and
output as well. With --wire=fds no messages are there, and it says so and ends.
"""

# snippet:begin
import os
import sys

import anyio
from mcp.server.stdio import stdio_server

fd_in = os.environ.pop("WIREGUARDRUN_IN", "")
fd_out = os.environ.pop("WIREGUARDRUN_OUT", "")
record = os.environ.pop("WIREGUARDRUN_HANDOVER", "").split(";")


def is_wire():
    """Whether nothing in between has closed or replaced a descriptor."""
    try:
        ends = {f"in={fd_in}@{identity(fd_in)}", f"out={fd_out}@{identity(fd_out)}",
                f"stdin={identity(0)}", f"stdout={identity(1)}"}
    except (OSError, ValueError):  # not open, or no number
        return False
    return os.name == "nt" or ends <= set(record)


def identity(fd):
    stat = os.fstat(int(fd))
    return f"{stat.st_dev:x}:{stat.st_ino:x}"


def stream(fd, mode):
    os.set_inheritable(int(fd), False)
    return anyio.wrap_file(
        open(int(fd), mode, encoding="utf-8", errors="replace", newline="\n", closefd=False)
    )


wire_in = wire_out = None  # the SDK takes standard input and output
if is_wire():
    wire_in, wire_out = stream(fd_in, "r"), stream(fd_out, "w")
    if "mode=auto" in record:  # says at once where we speak; wireguardrun takes it off
        os.write(int(fd_out), b"\n")
elif "mode=fds" in record:
    sys.exit("the wire is lost: start python without a launcher in between, or leave out --wire=fds")


async def serve(server):
    async with stdio_server(wire_in, wire_out) as (read, write):
        await server.run(read, write, server.create_initialization_options())
# snippet:end


# Why so:
#
# - At the top, before anything is started that would have the wire, or a file
#   is opened that has a number of it: Windows tells only whether one is open.
# - Standard input and output are checked as well: where a launcher has put pipes
#   of its own, the server uses those.
# - open() in text mode buffers, and a read returns what is there; the SDK
#   flushes after each message. No form of open() changes the descriptor's mode.
# - newline="\n": else a carriage return inside a message ends it, and both
#   halves are lost. Beside that Windows would write CR LF.
# - errors="replace": else one byte that is not UTF-8 ends the server.
# - Not inheritable: os.system and C libraries close nothing in what they start.
# - closefd=False: the SDK closes neither stream, and a thread may be reading
#   until the process ends. Python would warn of that (-X dev).
#
# The process ends by itself at the end of the input. Nothing else interrupts
# the thread that waits for a message, neither a cancelled task, nor sys.exit()
# or Ctrl-C, and the interpreter waits for that thread: a server that has to end
# earlier calls os._exit() after flushing what it wants to keep. It is the same
# on standard input.
#
# MCPServer (FastMCP) has no parameter for the streams; launcher.sh works for it.

import atexit
import ctypes
import json
import logging
import subprocess
import warnings

from mcp import types
from mcp.server import Server

# A logger that has kept standard output from before.
log = logging.getLogger("noisy")
log.addHandler(logging.StreamHandler(sys.stdout))
log.setLevel(logging.INFO)

libc = ctypes.CDLL(None)


def stray(tool, note):
    """What a tool prints for one call."""
    return f"<stray {tool} {note}>"


def shell(command, text):
    subprocess.run(["sh", "-c", command], env={**os.environ, "NOISE": text}, check=True)


def child_inherits(text):
    """A child by os.system, which closes nothing: it must not have the wire."""
    if os.system(f"if (: <&3) 2>/dev/null || (: >&4) 2>/dev/null; then exit 1; fi; echo '{text}'") != 0:
        raise RuntimeError("the child has a descriptor of the wire, or can't print")


def native_flush(text):
    libc.puts(text.encode())
    libc.fflush(None)


def message(**fields):
    return json.dumps({"jsonrpc": "2.0", **fields})


# The tools. Each writes text where a server must not. What is not flushed stays
# in a buffer, here until the process ends.
NOISES = {
    "print": print,
    "print_flush": lambda text: print(text, flush=True),
    "print_unfinished": lambda text: print(text, end="", flush=True),
    "print_answer": lambda text: print(message(id=999999, result={"text": text}), flush=True),
    "print_notification": lambda text: print(
        message(method="notifications/message", params={"level": "info", "data": text}), flush=True
    ),
    "stdout_write": lambda text: sys.stdout.write(text),
    # Descriptor 1, past sys.stdout: what native code does.
    "os_write": lambda text: os.write(1, text.encode() + b"\n"),
    "native_puts": lambda text: libc.puts(text.encode()),
    "native_flush": native_flush,
    "log": log.info,
    "warn": warnings.warn,
    "child_prints": lambda text: shell('echo "$NOISE"', text),
    "child_reads": lambda text: shell('echo "$NOISE read $(($(wc -c))) bytes"', text),
    "child_inherits": child_inherits,
}


async def list_tools(ctx, params):
    schema = {"type": "object", "properties": {"note": {"type": "string"}}, "required": ["note"]}
    return types.ListToolsResult(
        tools=[types.Tool(name=tool, description=f"Makes noise: {tool}.", input_schema=schema) for tool in NOISES]
    )


async def call_tool(ctx, params):
    tool, note = params.name, params.arguments["note"]
    # In a thread, so that calls go on side by side.
    await anyio.to_thread.run_sync(NOISES[tool], stray(tool, note))
    return types.CallToolResult(content=[types.TextContent(text=f"{tool} {note}")])


if __name__ == "__main__":
    if "--around" in sys.argv[1:]:  # noise before the server serves, and after
        for early in ("print_flush", "child_prints", "print_answer", "print_notification"):
            NOISES[early](stray(early, "at start"))
        atexit.register(print, stray("print", "at exit"))
    anyio.run(serve, Server("noisy", version="1.0.0", on_list_tools=list_tools, on_call_tool=call_tool))
