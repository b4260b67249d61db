// Uses a language server through vscode-jsonrpc, the library that editors
// have, and prints what the client saw as one JSON object:
//
//     node lsp.mjs JOB COMMAND [ARGUMENT]...
//
// JOB is a JSON object: "file" is the path of the document to open, "language"
// its identifier, "requests" a list of {method, params}, to each of which the
// document is added, "options" what initialize passes on to the server, and
// "diagnostics" says whether the server sends some by itself.
//
// The report: seen (all that has to be the same on every run), errors (of the
// connection), and stderr (the command's).

import { spawn } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { dirname } from 'node:path';
import { pathToFileURL } from 'node:url';
import { createMessageConnection, StreamMessageReader, StreamMessageWriter } from 'vscode-jsonrpc/node.js';

const [job, command, ...args] = process.argv.slice(2);
const { file, language, requests = [], options, diagnostics = false } = JSON.parse(job);

const report = { seen: {}, errors: [], stderr: '' };
const child = spawn(command, args);
child.stderr.setEncoding('utf8');
child.stderr.on('data', (text) => { report.stderr += text; });
const ended = new Promise((resolve) => child.on('close', (code, signal) => resolve({ code, signal })));

const connection = createMessageConnection(
  new StreamMessageReader(child.stdout), new StreamMessageWriter(child.stdin));
connection.onError(([error]) => report.errors.push(String(error)));
connection.onUnhandledNotification(() => {});
connection.onRequest((method, params) => (
  method === 'workspace/configuration' ? params.items.map(() => null) : null));
const uri = pathToFileURL(file).href;
const diagnosed = new Promise((resolve) => {
  connection.onNotification('textDocument/publishDiagnostics', (params) => {
    if (params.uri === uri && params.diagnostics.length > 0) resolve(params.diagnostics);
  });
});
connection.listen();

const root = pathToFileURL(dirname(file)).href;
const textDocument = { uri, languageId: language, version: 1, text: readFileSync(file, 'utf8') };
report.seen.initialize = await connection.sendRequest('initialize', {
  processId: process.pid,
  rootUri: root,
  initializationOptions: options,
  workspaceFolders: [{ uri: root, name: 'e2e' }],
  capabilities: {
    textDocument: {
      hover: { contentFormat: ['plaintext'] },
      documentSymbol: { hierarchicalDocumentSymbolSupport: true },
      publishDiagnostics: {},
    },
    workspace: { configuration: true, workspaceFolders: true },
  },
});
await connection.sendNotification('initialized', {});
await connection.sendNotification('textDocument/didOpen', { textDocument });
if (diagnostics) report.seen.diagnostics = await diagnosed;
report.seen.answers = [];
for (const { method, params } of requests) {
  let answer;
  do { // an empty list says that the server has not looked at the document yet
    answer = await connection.sendRequest(method, { textDocument: { uri }, ...params });
  } while (answer?.length === 0);
  report.seen.answers.push(answer);
}
report.seen.shutdown = await connection.sendRequest('shutdown');
await connection.sendNotification('exit');
child.stdin.end();
report.seen.end = await ended;
process.stdout.write(JSON.stringify(report) + '\n');
