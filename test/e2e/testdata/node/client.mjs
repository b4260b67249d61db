// Drives a server with the TypeScript SDK's own client and prints what
// happened as one JSON object:
//
//     node client.mjs JOB COMMAND [ARGUMENT]...
//
// JOB is a JSON object: "alone" lists the tools to call one after the other,
// "crowd" those to call all at once, "rounds" times. Each call has a note of
// its own, which the answer has to repeat.
//
// The report: tools (names that the server lists), calls (tool, note, and the
// answer's text or the error), errors (of the client and its transport: what
// could not be parsed, answers that nobody asked for), notifications, and
// stderr (the command's).

import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { StdioClientTransport } from '@modelcontextprotocol/sdk/client/stdio.js';

const [job, command, ...args] = process.argv.slice(2);
const { alone = [], crowd = [], rounds = 0 } = JSON.parse(job);

const report = { tools: [], calls: [], errors: [], notifications: [], stderr: '' };

// With "pipe" all three streams of the command are sockets, which is what
// editors and desktop applications on Node.js give it.
const transport = new StdioClientTransport({ command, args, env: process.env, stderr: 'pipe' });
transport.stderr.setEncoding('utf8');
transport.stderr.on('data', (text) => { report.stderr += text; });
const stderrEnd = new Promise((resolve) => transport.stderr.on('end', resolve));

const client = new Client({ name: 'e2e', version: '1' });
client.onerror = (error) => report.errors.push(String(error));
client.fallbackNotificationHandler = async (note) => { report.notifications.push(note); };

async function call(tool, note) {
  const entry = { tool, note };
  report.calls.push(entry);
  try {
    const result = await client.callTool({ name: tool, arguments: { note } });
    entry.text = result.content[0].text;
  } catch (error) {
    entry.error = String(error);
  }
}

await client.connect(transport);
report.tools = (await client.listTools()).tools.map((tool) => tool.name);
for (const tool of alone) await call(tool, 'alone');
for (let round = 0; round < rounds; round++) {
  await Promise.all(crowd.map((tool) => call(tool, `crowd-${round}`)));
}
await client.close();
await stderrEnd;
process.stdout.write(JSON.stringify(report) + '\n');
