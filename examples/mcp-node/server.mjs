// A noisy MCP server on the TypeScript SDK. Nothing that it or its children
// print reaches the client, because its transport is on the two descriptors
// that wireguardrun hands down:
//
//     wireguardrun -- node server.mjs
//
// Without wireguardrun it serves on standard input and output as ever, and
// what it prints is on the wire.
//
// Start node itself, not npx or npm run: node closes all descriptors above 2
// but its own in what it starts, so a launcher written for it loses the wire.

import { execSync, spawnSync } from 'node:child_process';
import { McpServer } from '@modelcontextprotocol/sdk/server/mcp.js';
import { z } from 'zod';

// snippet:begin
import fs from 'node:fs';
import net from 'node:net';
import { StdioServerTransport } from '@modelcontextprotocol/sdk/server/stdio.js';

const { WIREGUARDRUN_IN: wireIn, WIREGUARDRUN_OUT: wireOut } = process.env;
const transport = new StdioServerTransport(
  wireIn ? open(Number(wireIn), true) : process.stdin,
  wireOut ? open(Number(wireOut), false) : process.stdout,
);

function open(fd, readable) {
  try {
    return new net.Socket({ fd, readable, writable: !readable }); // a pipe or a socket
  } catch { // a file or a terminal
    return readable ? fs.createReadStream(null, { fd }) : fs.createWriteStream(null, { fd });
  }
}
// snippet:end

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
process.on('exit', () => console.log(stray('console_log', 'at exit')));
await server.connect(transport);
