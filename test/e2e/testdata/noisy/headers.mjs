// The noisy server with header frames, as of language servers;
// noisy_test.go says what it does.
import { execFileSync } from 'node:child_process';
import { writeSync } from 'node:fs';

const print = (text) => process.stdout.write(text);
const sh = (script) => execFileSync('sh', ['-c', script], { stdio: 'inherit' });
const frame = (body) => `Content-Length: ${Buffer.byteLength(body)}\r\n\r\n${body}`;

function serve(request) {
  const { id, method: kind } = JSON.parse(request);
  const body = `{"jsonrpc":"2.0","id":${id},"result":"${kind}"}`;
  const answer = frame(body);
  switch (kind) {
    case 'log_messages': print(`recv ${request}\nsend ${body}\n`); break;
    case 'before': console.log('<before>'); break;
    case 'same_line': print('<same_line>'); break;
    case 'after': return print(`${answer}<after>\n`);
    case 'after_same_line': return print(`${answer}<after_same_line>`);
    case 'native': writeSync(1, '<native>\n'); break;
    case 'native_unfinished': writeSync(1, '<native_unfinished>'); break;
    case 'child': sh('echo "<child>"'); break;
    case 'child_unfinished': sh('printf "<child_unfinished>"'); break;
    case 'progress': for (const n of [10, 50, 100]) print(`\r<progress> ${n}%`); break;
    case 'escape': print('\x1b[1m<escape>\x1b[0m'); break;
    case 'brace': print('{ <brace>\n'); break;
    case 'own': print(frame('{"jsonrpc":"2.0","method":"own"}')); break;
  }
  print(answer);
}

console.log('<start>');
process.on('exit', () => writeSync(1, '<exit>'));
let data = '';
for await (const chunk of process.stdin.setEncoding('latin1')) {
  data += chunk;
  for (let m; (m = /^Content-Length: (\d+)\r\n\r\n/.exec(data)) && data.length >= m[0].length + Number(m[1]);) {
    const end = m[0].length + Number(m[1]);
    const request = data.slice(m[0].length, end);
    data = data.slice(end);
    serve(request);
  }
}
