import { closeSync, openSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { Readable } from 'node:stream'
import { command } from '../../bin/fanout-complete.ts'
import type { Context } from '../../src/cli/command.ts'
import { Interrupt } from '../../src/cli/interrupt.ts'
import { runCommand } from '../../src/cli/main.ts'
import { Reporter } from '../../src/cli/reporter.ts'
import { systemClock } from '../../src/cli/system-clock.ts'
import { newFolder } from './run.ts'

export interface FanoutResult {
  code: number
  stdout: string
  stderr: string
  /** The lines of standard output, and the same parsed. */
  lines: string[]
  records: Answered[]
  /** Records of --failures, in the order in which they were written. */
  failures: Failed[]
  failureLines: string[]
  /** What --stats wrote. */
  stats: Stats
}

/** An output line of fanout-complete, as far as tests look into it. */
export interface Answered {
  id: string | number
  status: string
  conversations: { role: string; content: string | null; reasoning_content?: string }[]
  finish_reason: string
  usage: Record<string, number>
  attempts: number
  timing: { started_at: string; first_token_ms?: number; total_ms: number }
  request_hash: string
  text?: string
  input: Record<string, unknown>
}

export interface Failed {
  id: string | number
  status: 'error'
  error: {
    code: string
    message: string
    http_status: number | null
    retryable: boolean
    attempts: number
    elapsed_ms: number
  }
  partial: { content?: string; reasoning_content?: string; conversations?: unknown[] }
  input?: unknown
  input_text?: string
  input_base64?: string
}

export interface Stats {
  records: number
  answered: number
  failed: number
  skipped: number
  repeated: number
  left: number
  retries: number
  failed_by_code: Record<string, number>
  retries_by_code: Record<string, number>
  outages: number
  finish: { length: number; content_filter: number; empty: number }
  tokens: { prompt: number; completion: number; reasoning: number; discarded: number }
}

export interface FanoutOptions {
  input?: string | Uint8Array | readonly Uint8Array[] | Readable
  env?: Record<string, string>
  random?: () => number
  interrupt?: Interrupt
  onUsr1?: (show: () => void) => void
}

/** Fast enough that no test waits, slow enough that a busy machine keeps up. */
const SPEED = '50'

/**
 * Runs fanout-complete inside this process, fifty times faster than life, with --failures and
 * --stats, and checks what must hold of every run: records = answered + failed + skipped + left,
 * and whole lines.
 */
export async function fanout(
  url: string,
  args: readonly string[],
  options: FanoutOptions = {},
): Promise<FanoutResult> {
  const folder = newFolder()
  const [output, failures, stats] = ['stdout', 'failures', 'stats'].map((name) =>
    join(folder, name),
  ) as [string, string, string]
  const stdout = openSync(output, 'a')
  const stdin = openSync('/dev/null', 'r')
  let stderr = ''
  const write = (text: string): void => {
    stderr += text
  }
  const { input = '', env = {}, random = Math.random } = options
  const context = {
    env,
    stdin: { fd: stdin, stream: () => asStream(input) },
    stdout: { fd: stdout },
    print: (text) => Promise.resolve(write(text)),
    report: new Reporter(command.name, write),
    terminal: undefined,
    onUsr1: (show) => options.onUsr1?.(show),
    interrupt: options.interrupt ?? new Interrupt(),
    clock: systemClock,
    random,
  } satisfies Context
  const fixed = ['--url', url, '--clock-speed', SPEED, '--failures', failures, '--stats', stats]
  try {
    const code = await runCommand(command, [...fixed, ...args], context)
    return result(code, stderr, { output, failures, stats })
  } finally {
    closeSync(stdout)
    closeSync(stdin)
  }
}

function result(
  code: number,
  stderr: string,
  files: { output: string; failures: string; stats: string },
): FanoutResult {
  const lines = linesOf(files.output)
  const failureLines = linesOf(files.failures)
  const stats = parsed<Stats>(linesOf(files.stats))[0]
  if (stats) assertBalanced(stats)
  return {
    code,
    stderr,
    stdout: lines.map((line) => `${line}\n`).join(''),
    lines,
    records: parsed<Answered>(lines),
    failures: parsed<Failed>(failureLines),
    failureLines,
    stats: stats!,
  }
}

export function assertBalanced({ records, answered, failed, skipped, left }: Stats): void {
  if (records === answered + failed + skipped + left) return
  const counts = { records, answered, failed, skipped, left }
  throw new Error(`the counts do not balance: ${JSON.stringify(counts)}`)
}

/** The lines of a file that has whole lines only; none where it is missing. */
export function linesOf(file: string): string[] {
  let text: string
  try {
    text = readFileSync(file, 'utf8')
  } catch {
    return []
  }
  if (text === '') return []
  if (!text.endsWith('\n')) throw new Error(`${file} ends in the middle of a line`)
  return text.slice(0, -1).split('\n')
}

export function parsed<T>(lines: readonly string[]): T[] {
  return lines.map((line) => JSON.parse(line) as T)
}

function asStream(input: NonNullable<FanoutOptions['input']>): Readable {
  if (input instanceof Readable) return input
  if (typeof input === 'string') return Readable.from(input === '' ? [] : [Buffer.from(input)])
  if (input instanceof Uint8Array) return Readable.from([input])
  return Readable.from(input)
}

/** Records with a prompt, ids from 1. */
export function prompts(count: number): string {
  return Array.from({ length: count }, (_, i) => `{"id":${i + 1},"prompt":"p${i + 1}"}\n`).join('')
}

/** Lines of standard error that are neither warnings, counts nor progress. */
export function errorsOf({ stderr }: FanoutResult): string[] {
  return stderr
    .split('\n')
    .filter((line) => line !== '' && !/warning: |records?: |^Progress: |to go on: /.test(line))
}
