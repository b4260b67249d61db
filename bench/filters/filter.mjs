// Runs a server and lets only its JSON messages through to stdout.
import { spawn } from 'node:child_process'
import readline from 'node:readline'

const [command, ...args] = process.argv.slice(2)
const child = spawn(command, args, { stdio: ['pipe', 'pipe', 'inherit'] })

process.stdin.pipe(child.stdin)

const lines = readline.createInterface({ input: child.stdout, crlfDelay: Infinity })

lines.on('line', (line) => {
  let message
  try {
    message = JSON.parse(line)
  } catch {
    // not JSON
  }
  if (message && message.jsonrpc === '2.0') {
    process.stdout.write(line + '\n')
  } else {
    process.stderr.write(line + '\n')
  }
})

child.on('close', (code) => {
  process.exit(code ?? 1)
})
