import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { closeSync, existsSync, mkdtempSync, openSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Readable } from 'node:stream'
import { fileURLToPath } from 'node:url'
import type { Command, Context } from '../../src/cli/command.ts'
import { Interrupt } from '../../src/cli/interrupt.ts'
import { runCommand } from '../../src/cli/main.ts'
import { Reporter } from '../../src/cli/reporter.ts'
import { systemClock } from '../../src/cli/system-clock.ts'

export interface Result {
  code: number | null
  signal: NodeJS.Signals | null
  stdout: Buffer
  stderr: string
}

export interface RunOptions {
  cwd?: string
  /** Standard input: bytes, pieces, or nothing. */
  input?: Uint8Array | string | readonly Uint8Array[] | AsyncIterable<Uint8Array>
  /** Files to be standard input and output instead of pipes. */
  stdin?: number
  stdout?: number
  env?: Record<string, string>
  /** A shell script that ends with `exec "$0" "$@"`, to set limits for the process. */
  shell?: string
  /** Called with the process as soon as it runs. */
  onStart?: (child: import('node:child_process').ChildProcess) => void
}

/** The executable of a binary, as `npm run build` leaves it; DIST names another build. */
export function executable(name: string): string {
  const dist = process.env.DIST ?? fileURLToPath(new URL('../../dist', import.meta.url))
  const path = join(dist, 'bin', `${name}.js`)
  if (!existsSync(path)) throw new Error(`${path} is missing: run npm run build first`)
  return path
}

/** Runs a binary as a process of its own. */
export async function run(name: string, args: readonly string[], options: RunOptions = {}) {
  const argv = [process.execPath, executable(name), ...args]
  const [program, ...rest] =
    options.shell === undefined ? argv : ['sh', '-c', options.shell, ...argv]
  const child = spawn(program!, rest, {
    cwd: options.cwd,
    env: { ...process.env, ...options.env },
    stdio: [options.stdin ?? 'pipe', options.stdout ?? 'pipe', 'pipe'],
  })
  const stdout: Buffer[] = []
  const stderr: Buffer[] = []
  child.stdout?.on('data', (chunk: Buffer) => stdout.push(chunk))
  child.stderr?.on('data', (chunk: Buffer) => stderr.push(chunk))
  // A binary that does not read all of its input is no error here.
  child.stdin?.on('error', () => {})
  if (child.stdin) Readable.from(inPieces(options.input)).pipe(child.stdin)
  options.onStart?.(child)
  const [code, signal] = (await once(child, 'close')) as [number | null, NodeJS.Signals | null]
  const result: Result = {
    code,
    signal,
    stdout: Buffer.concat(stdout),
    stderr: Buffer.concat(stderr).toString(),
  }
  return result
}

/** Runs a binary's command inside this process, which costs a hundredth of a process of its own. */
export async function runInProcess(
  command: Command,
  args: readonly string[],
  options: Pick<RunOptions, 'input' | 'stdin'> = {},
): Promise<Result> {
  const output = join(temporaryFolder(), 'stdout')
  const stdout = openSync(output, 'w')
  const stdin = options.stdin ?? openSync('/dev/null', 'r')
  let stderr = ''
  const context = {
    env: {},
    stdin: { fd: stdin, stream: () => Readable.from(inPieces(options.input)) },
    stdout: { fd: stdout },
    print: (text) => {
      stderr += text
      return Promise.resolve()
    },
    report: new Reporter(command.name, (text) => {
      stderr += text
    }),
    terminal: undefined,
    onUsr1: () => {},
    interrupt: new Interrupt(),
    clock: systemClock,
    random: Math.random,
  } satisfies Context
  try {
    const code = await runCommand(command, args, context)
    return { code, signal: null, stdout: readFileSync(output), stderr }
  } finally {
    closeSync(stdout)
    if (options.stdin === undefined) closeSync(stdin)
  }
}

function inPieces(input: RunOptions['input']): Iterable<Uint8Array> | AsyncIterable<Uint8Array> {
  if (input === undefined) return []
  if (typeof input === 'string') return input === '' ? [] : [Buffer.from(input)]
  if (input instanceof Uint8Array) return input.length === 0 ? [] : [input]
  return input
}

/** Bytes in pieces of one size. */
export function pieces(bytes: Uint8Array, size: number): Uint8Array[] {
  const parts: Uint8Array[] = []
  for (let at = 0; at < bytes.length; at += size) parts.push(bytes.subarray(at, at + size))
  return parts
}

let folder: string | undefined
let folders = 0

/** A folder that is removed when this process ends. */
export function temporaryFolder(): string {
  if (folder === undefined) {
    folder = mkdtempSync(join(tmpdir(), 'completion-pipes-'))
    const remove = folder
    process.on('exit', () => rmSync(remove, { recursive: true, force: true }))
  }
  return folder
}

/** A new empty folder inside it. */
export function newFolder(): string {
  return mkdtempSync(join(temporaryFolder(), `${folders++}-`))
}
