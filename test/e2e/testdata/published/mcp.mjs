// Uses an MCP server with the TypeScript SDK's own client and prints what the
// client saw as one JSON object:
//
//     node mcp.mjs JOB COMMAND [ARGUMENT]...
//
// JOB is a JSON object: "tool" and "arguments" are the one call to make, or
// no tool for none.
//
// The report: seen (all that has to be the same on every run), errors (of the
// client and its transport, such as a line that could not be parsed), and
// stderr (the command's).

import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { StdioClientTransport } from '@modelcontextprotocol/sdk/client/stdio.js';

const [job, command, ...args] = process.argv.slice(2);
const { tool, arguments: given = {} } = JSON.parse(job);

const report = { seen: {}, errors: [], stderr: '' };

const transport = new StdioClientTransport({ command, args, env: process.env, stderr: 'pipe' });
transport.stderr.setEncoding('utf8');
transport.stderr.on('data', (text) => { report.stderr += text; });
const stderrEnd = new Promise((resolve) => transport.stderr.on('end', resolve));

const client = new Client({ name: 'e2e', version: '1' });
client.onerror = (error) => report.errors.push(String(error));

await client.connect(transport);
report.seen.server = client.getServerVersion();
report.seen.capabilities = client.getServerCapabilities();
report.seen.instructions = client.getInstructions();
report.seen.tools = (await client.listTools()).tools;
if (tool) report.seen.result = await client.callTool({ name: tool, arguments: given });
await client.close();
await stderrEnd;
process.stdout.write(JSON.stringify(report) + '\n');
