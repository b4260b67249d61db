// Runs a program under a debug adapter and prints what the client saw as one
// JSON object:
//
//     node dap.mjs PROGRAM COMMAND [ARGUMENT]...
//
// The session is the usual one: initialize, launch, a breakpoint in line 2,
// where the variable is read, then on to the end. The messages are read and
// written by vscode-jsonrpc, whose headers are the same.
//
// The report: seen (all that has to be the same on every run), errors (of the
// connection), and stderr (the command's).

import { spawn } from 'node:child_process';
import { StreamMessageReader, StreamMessageWriter } from 'vscode-jsonrpc/node.js';

const [program, command, ...args] = process.argv.slice(2);

const report = { seen: { output: '' }, errors: [], stderr: '' };
const child = spawn(command, args);
child.stderr.setEncoding('utf8');
child.stderr.on('data', (text) => { report.stderr += text; });
const ended = new Promise((resolve) => child.on('close', resolve));

const reader = new StreamMessageReader(child.stdout);
const writer = new StreamMessageWriter(child.stdin);
reader.onError((error) => report.errors.push(String(error)));

// What has come and what waits for it, by "response SEQ" or "event NAME".
const come = new Map(), waiting = new Map();
function next(key) {
  if (come.has(key)) return Promise.resolve(come.get(key));
  return new Promise((resolve) => waiting.set(key, resolve));
}
reader.listen((message) => {
  if (message.type === 'event' && message.event === 'output' && message.body.category === 'stdout') {
    report.seen.output += message.body.output;
  }
  const key = message.type === 'response' ? `response ${message.request_seq}` : `event ${message.event}`;
  come.set(key, message);
  waiting.get(key)?.(message);
});

let seq = 0;
async function send(command, args) {
  await writer.write({ seq: ++seq, type: 'request', command, arguments: args });
  return seq;
}
async function request(command, args) {
  const { success, body } = await next(`response ${await send(command, args)}`);
  return { success, body };
}

report.seen.initialize = await request('initialize', { adapterID: 'e2e', pathFormat: 'path', linesStartAt1: true });
const launch = await send('launch', { program, console: 'internalConsole', redirectOutput: true, justMyCode: true });
await next('event initialized');
report.seen.breakpoints = await request('setBreakpoints', { source: { path: program }, breakpoints: [{ line: 2 }] });
await request('configurationDone', {});
report.seen.launch = (await next(`response ${launch}`)).success;
const stopped = await next('event stopped');
report.seen.stopped = stopped.body.reason;
const { body: stack } = await request('stackTrace', { threadId: stopped.body.threadId });
report.seen.line = stack.stackFrames[0].line;
const frameId = stack.stackFrames[0].id;
report.seen.value = (await request('evaluate', { expression: 'answer', frameId })).body.result;
await request('continue', { threadId: stopped.body.threadId });
await next('event terminated');
await request('disconnect', {});
// How the adapter ends says nothing: an end of its input while it sends its
// last event is an error to it, bare too.
child.stdin.end();
await ended;
process.stdout.write(JSON.stringify(report) + '\n');
