// A noisy server that knows nothing of wireguardrun; noisy_test.go says what
// it does.
import { execFileSync } from 'node:child_process';
import { writeSync } from 'node:fs';
import { createInterface } from 'node:readline';
import { Worker } from 'node:worker_threads';

const print = (text) => process.stdout.write(text);
const sh = (script) => execFileSync('sh', ['-c', script], { stdio: 'inherit' });

async function serve(request) {
  const { id, method: kind } = JSON.parse(request);
  const answer = `{"jsonrpc":"2.0","id":${id},"result":"${kind}"}`;
  switch (kind) {
    case 'log_messages': return print(`recv ${request}\nsend ${answer}\n${answer}\n`);
    case 'log_sent': return print(`${answer}\nsent ${answer}\n`);
    case 'log_object': console.log(JSON.stringify({ level: 'info', message: JSON.parse(answer) })); break;
    case 'before': console.log('<before>'); break;
    case 'same_line': print('<same_line>'); break;
    case 'after': return print(`${answer}\n<after>\n`);
    case 'after_same_line': return print(`${answer} <after_same_line>\n`);
    case 'native': writeSync(1, '<native>\n'); break;
    case 'native_unfinished': writeSync(1, '<native_unfinished>'); break;
    case 'child': sh('echo "<child>"'); break;
    case 'child_unfinished': sh('printf "<child_unfinished>"'); break;
    case 'threads': {
      const code = `for (let i = 0; i < 9; i++) require('fs').writeSync(1, '<threads>\\n')`;
      await Promise.all([1, 2, 3].map(() => new Promise((resolve) => {
        new Worker(code, { eval: true }).on('exit', resolve);
      })));
      break;
    }
    case 'progress': for (const n of [10, 50, 100]) print(`\r<progress> ${n}%`); break;
    case 'escape': print('\x1b[1m<escape>\x1b[0m'); break;
    case 'brace': print('{ <brace>\n'); break;
    case 'own': print('{"jsonrpc":"2.0","method":"own"}\n'); break;
  }
  print(answer + '\n');
}

console.log('<start>');
process.on('exit', () => writeSync(1, '<exit>'));
for await (const line of createInterface({ input: process.stdin })) await serve(line);
