import { spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { executable } from './run.ts'

/** Whether a terminal can be made here: by the pty module of Python, which Linux and macOS have. */
export const hasTerminals = spawnSync('python3', ['-c', 'import pty']).status === 0

/** Runs the command on a new terminal, whose output is ours, and ends as it does. */
const PTY = `
import os, pty, sys
status = pty.spawn(sys.argv[1:])
sys.exit(os.waitstatus_to_exitcode(status))
`

export interface TerminalResult {
  code: number | null
  /** All that the terminal got, control sequences included. */
  shown: string
}

/** Runs a binary whose standard error is a terminal of so many columns; standard output goes to `output`. */
export async function onTerminal(
  name: string,
  args: readonly string[],
  { cwd, columns, output, env }: TerminalOptions,
): Promise<TerminalResult> {
  const script = `stty cols ${columns} && exec "$0" "$@" > ${output}`
  const argv = ['sh', '-c', script, process.execPath, executable(name), ...args]
  const child = spawn('python3', ['-c', PTY, ...argv], {
    cwd,
    env: { ...process.env, TERM: 'xterm', NO_COLOR: '', ...env },
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  const shown: Buffer[] = []
  child.stdout.on('data', (chunk: Buffer) => shown.push(chunk))
  const [code] = (await once(child, 'close')) as [number | null]
  return { code, shown: Buffer.concat(shown).toString() }
}

export interface TerminalOptions {
  cwd: string
  columns: number
  output: string
  env?: Record<string, string>
}
