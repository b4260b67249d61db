// A noisy MCP server on the TypeScript SDK. Nothing that it or its children
// print reaches the client, because its transport is on the two descriptors
// that wireguardrun hands down:
//
//     wireguardrun -- node server.mjs
//
// Without wireguardrun it serves on standard input and output as ever, and
// what it prints is on the wire.
//
// node closes all descriptors above 2 but its own in what it starts, so that
// launchers written for it, npx and npm run among them, lose the two. Behind
// them it serves on standard input and output too, of which wireguardrun lets
// only messages through. With --wire=fds there are none there, and it says so.

import { execSync, spawnSync } from 'node:child_process';
import { McpServer } from '@modelcontextprotocol/sdk/server/mcp.js';
import { z } from 'zod';

// snippet:begin
import fs from 'node:fs';
import net from 'node:net';
import { StdioServerTransport } from '@modelcontextprotocol/sdk/server/stdio.js';

const { WIREGUARDRUN_IN, WIREGUARDRUN_OUT, WIREGUARDRUN_HANDOVER = '' } = process.env;
const [wireIn, wireOut] = [Number(WIREGUARDRUN_IN), Number(WIREGUARDRUN_OUT)];
const record = WIREGUARDRUN_HANDOVER.split(';');
const handed = isWire();
if (!handed && record.includes('mode=fds')) {
  throw new Error('the wire is lost: start node without a launcher in between, or leave out --wire=fds');
}
// Says at once where we speak; wireguardrun takes it off.
if (handed && record.includes('mode=auto')) fs.writeSync(wireOut, '\n');
const transport = new StdioServerTransport(
  handed ? open(wireIn, true) : process.stdin,
  handed ? open(wireOut, false) : process.stdout,
);

// Whether nothing in between, such as npx, has closed or replaced a descriptor.
function isWire() {
  const id = (fd) => {
    const { dev, ino } = fs.fstatSync(fd, { bigint: true });
    return `${dev.toString(16)}:${ino.toString(16)}`;
  };
  try {
    const ends = [`in=${wireIn}@${id(wireIn)}`, `out=${wireOut}@${id(wireOut)}`,
      `stdin=${id(0)}`, `stdout=${id(1)}`];
    return process.platform === 'win32' || ends.every((end) => record.includes(end));
  } catch { // no number, or not open
    return false;
  }
}

function open(fd, readable) {
  try {
    return new net.Socket({ fd, readable, writable: !readable }); // a pipe or a socket
  } catch { // a file or a terminal
    return readable ? fs.createReadStream(null, { fd }) : fs.createWriteStream(null, { fd });
  }
}
// snippet:end

// Why 0 and 1 are checked as well: where a launcher has put pipes of its own, we
// serve on those. On Windows node tells of no descriptor more than that it is
// open.
//
// Why net.Socket where it can be (pipes and sockets are what clients give) and
// fs streams only where it can't:
//
// - fs streams read and write in libuv's pool of four threads. The read that
//   waits for the client keeps one of them for good, and an uncaught error
//   can't end the process while it does.
// - After process.exit an fs stream has written its first chunk at most; a
//   socket has written all that the pipe had room for.
//
// An input socket that is writable would shut down the output at the end of
// the input, where the client gave one socket for both. A socket makes its
// descriptor non-blocking; wireguardrun undoes that at the end.
//
// The process ends by itself at the end of the input. To end it earlier, call
// process.exit(): closing the server only pauses the input.

// What we start is not the server: the numbers mean nothing there.
delete process.env.WIREGUARDRUN_IN;
delete process.env.WIREGUARDRUN_OUT;
delete process.env.WIREGUARDRUN_HANDOVER;

// The tools. Each writes text where a server must not.
const noises = {
  console_log: (text) => console.log(text),
  // No line end: a progress bar.
  write_unfinished: (text) => process.stdout.write(text),
  // Descriptor 1, past process.stdout: what native code does.
  write_sync: (text) => fs.writeSync(1, text + '\n'),
  dev_stdout: (text) => fs.appendFileSync('/dev/stdout', text + '\n'),
  child_prints: (text) => execSync('echo "$NOISE"', inherit({ NOISE: text })),
  child_reads: (text) => {
    const { status } = spawnSync('sh', ['-c', 'echo "$NOISE read $(($(wc -c))) bytes"'], inherit({ NOISE: text }));
    if (status !== 0) throw new Error(`the child ended with ${status}`);
  },
  // Debug prints that look like messages of ours.
  print_answer: (text) => console.log(JSON.stringify({ jsonrpc: '2.0', id: 999999, result: { text } })),
  print_notification: (text) => console.log(JSON.stringify({
    jsonrpc: '2.0', method: 'notifications/message', params: { level: 'info', data: text },
  })),
};

function inherit(env) {
  return { stdio: 'inherit', env: { ...process.env, ...env } };
}

// What a tool prints for one call.
const stray = (tool, note) => `<stray ${tool} ${note}>`;

const server = new McpServer({ name: 'noisy', version: '1.0.0' });
for (const [tool, makeNoise] of Object.entries(noises)) {
  server.registerTool(
    tool,
    { description: `Makes noise: ${tool}.`, inputSchema: { note: z.string() } },
    async ({ note }) => {
      makeNoise(stray(tool, note));
      return { content: [{ type: 'text', text: `${tool} ${note}` }] };
    },
  );
}

console.log(stray('console_log', 'at start'));
// Noise that looks like a message, before there is one on the wire.
if (process.argv.includes('--around')) noises.print_notification(stray('print_notification', 'at start'));
process.on('exit', () => console.log(stray('console_log', 'at exit')));
await server.connect(transport);
