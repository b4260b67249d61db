"""Drives a server with the Python SDK's own client and prints what happened as
one JSON object:

    python client.py JOB COMMAND [ARGUMENT]...

JOB is a JSON object: "alone" lists the tools to call one after the other,
"crowd" those to call all at once, "rounds" times. Each call has a note of its
own, which the answer has to repeat.

The report: tools (names that the server lists), calls (tool, note, and the
answer's text or the error), errors (what the client could not parse, and
answers that nobody asked for), notifications, and stderr (the command's).
"""

import json
import logging
import os
import sys
import tempfile

import anyio
import mcp.client.stdio
from mcp import ClientSession, StdioServerParameters

report = {"tools": [], "calls": [], "errors": [], "notifications": [], "stderr": ""}

# The client waits that many seconds for the server to end by itself, then it
# kills. No machine is to be too slow for that.
mcp.client.stdio.PROCESS_TERMINATION_TIMEOUT = 600


class DroppedAnswers(logging.Handler):
    """Only the SDK's log tells of an answer that nobody asked for."""

    def emit(self, record):
        text = record.getMessage()
        if text.startswith("dropping response"):
            report["errors"].append(text)


dispatcher = logging.getLogger("mcp.shared.jsonrpc_dispatcher")
dispatcher.setLevel(logging.DEBUG)
dispatcher.addHandler(DroppedAnswers())
dispatcher.propagate = False


async def on_message(message):
    """Called by the session with notifications and with what it can't parse."""
    if isinstance(message, Exception):
        report["errors"].append(str(message))
    else:
        report["notifications"].append(message.model_dump(mode="json"))


async def call(session, tool, note):
    entry = {"tool": tool, "note": note}
    report["calls"].append(entry)
    try:
        result = await session.call_tool(tool, {"note": note})
        entry["text"] = result.content[0].text
        if result.is_error:
            entry["error"] = "is_error is set"
    except Exception as error:
        entry["error"] = repr(error)


async def drive(job, command, arguments):
    with tempfile.TemporaryFile() as stderr:
        parameters = StdioServerParameters(command=command, args=arguments, env=dict(os.environ))
        async with mcp.client.stdio.stdio_client(parameters, errlog=stderr) as (read, write):
            async with ClientSession(read, write, message_handler=on_message) as session:
                await session.initialize()
                report["tools"] = [tool.name for tool in (await session.list_tools()).tools]
                for tool in job.get("alone", []):
                    await call(session, tool, "alone")
                for turn in range(job.get("rounds", 0)):
                    async with anyio.create_task_group() as crowd:
                        for tool in job.get("crowd", []):
                            crowd.start_soon(call, session, tool, f"crowd-{turn}")
        stderr.seek(0)
        report["stderr"] = stderr.read().decode()


anyio.run(drive, json.loads(sys.argv[1]), sys.argv[2], sys.argv[3:])
print(json.dumps(report))
