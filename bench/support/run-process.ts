import { type ChildProcess, spawn } from 'node:child_process'
import { closeSync, openSync } from 'node:fs'
import { canWatch, ProcessWatch, type Usage } from './process-watch.ts'

export interface ProcessOptions {
  /** Kills the process when the run is broken off. */
  signal: AbortSignal
  /** File that standard output goes to; the default is nowhere. */
  stdout?: string
  /** Exit codes that are well; the default is 0 alone. */
  exitCodes?: readonly number[]
  /** Sees the process while it runs, as it begins. */
  onStart?: (watch: ProcessWatch | undefined) => void
  /** Whether to look at what it uses. */
  watch?: boolean
}

export interface Finished {
  /** From start to exit. */
  seconds: number
  /** Undefined where it was not watched or cannot be. */
  usage: Usage | undefined
}

/** Bytes of standard error that are kept for the message when a process fails. */
const KEPT_STDERR = 2000

/**
 * Runs a program to its end, standard input empty.
 *
 * @throws Error where it ends with another exit code than expected: then its time says nothing
 */
export async function runProcess(
  [program, ...args]: readonly [string, ...string[]],
  { signal, stdout = '/dev/null', exitCodes = [0], onStart, watch = false }: ProcessOptions,
): Promise<Finished> {
  const out = openSync(stdout, 'w')
  const began = process.hrtime.bigint()
  const child = spawn(program, args, { stdio: ['ignore', out, 'pipe'], signal })
  const watcher =
    watch && canWatch && child.pid !== undefined ? new ProcessWatch(child.pid) : undefined
  onStart?.(watcher)
  try {
    const { code, stderr, ended } = await exitOf(child)
    if (code === null || !exitCodes.includes(code)) {
      throw new Error(`${program} ${args.join(' ')}: exit code ${code}\n${stderr}`)
    }
    return { seconds: Number(ended - began) / 1e9, usage: watcher?.last }
  } finally {
    watcher?.stop()
    closeSync(out)
  }
}

function exitOf(
  child: ChildProcess,
): Promise<{ code: number | null; stderr: string; ended: bigint }> {
  return new Promise((resolve, reject) => {
    let stderr = ''
    let ended = 0n
    child.stderr?.on('data', (text: Buffer) => {
      stderr = (stderr + text.toString()).slice(-KEPT_STDERR)
    })
    child.on('error', reject)
    child.on('exit', () => {
      ended = process.hrtime.bigint()
    })
    child.on('close', (code) => resolve({ code, stderr, ended }))
  })
}
