import type { Clock } from '../core/clock.ts'
import type { Interrupt } from './interrupt.ts'
import { count, flag, type OptionTable, type OptionValues, shard, size, text } from './option.ts'
import type { Reporter } from './reporter.ts'

/** What a run gets from the outside. Tests give other streams, another clock, other dice. */
export interface Context {
  env: Readonly<Record<string, string | undefined>>
  stdin: { fd: number; stream: () => import('node:stream').Readable }
  stdout: { fd: number }
  /** Writes text that is no data (help, version) to standard output. */
  print: (text: string) => Promise<void>
  report: Reporter
  /** The terminal that standard error is, if it can move its cursor. */
  terminal: { readonly columns: number } | undefined
  /** Calls back when a person asks how it goes (USR1). */
  onUsr1: (callback: () => void) => void
  interrupt: Interrupt
  /** A clock that runs `speed` times faster than the wall. */
  clock: (speed: number) => Clock
  /** Uniform in [0, 1). */
  random: () => number
}

/** A binary as a value: everything that is known about it, and the function that is the program. */
export interface Command<Table extends OptionTable = OptionTable> {
  name: string
  /** One line, lower case, no full stop. */
  summary: string
  /** The command line's form, such as `validate-jsonl [options] [FILE...]`. */
  usage: string
  /** Command lines as a person would type them. */
  examples: readonly string[]
  options: Table
  /** What the help text ends with: exit codes, rules that the options do not tell. */
  notes?: string
  /**
   * Runs the program.
   *
   * @returns the exit code; a ToolError thrown carries its own
   */
  run(context: Context, options: OptionValues<Table>, operands: string[]): Promise<number>
}

/** Gives a command's `run` the types of its own options. */
export function defineCommand<const Table extends OptionTable>(
  command: Command<Table>,
): Command<Table> {
  return command
}

/** Options that every binary has. */
export const commonOptions = {
  quiet: flag({ group: 'Messages', short: 'q', describe: 'Errors only: no warnings, no counts' }),
  verbose: flag({ group: 'Messages', short: 'v', describe: 'Say more about what is done' }),
  stats: text({
    group: 'Messages',
    metavar: 'FILE',
    describe: 'Write the counts as one JSON object at the end (-: standard error)',
  }),
  unbuffered: flag({
    group: 'Messages',
    describe: 'Write each record as soon as it is ready: always so, accepted for scripts',
  }),
  lineBuffered: flag({ group: 'Messages', describe: 'The same as --unbuffered' }),
  help: flag({ group: 'Help', short: 'h', describe: 'Show this text' }),
  version: flag({ group: 'Help', describe: 'Show the version' }),
  completion: text({
    group: 'Help',
    metavar: 'SHELL',
    describe: 'Print a completion script for bash, zsh or fish',
  }),
} as const

/** Options of the binaries that read lines. */
export const readOptions = {
  readSize: size({
    group: 'Input',
    otherwise: undefined,
    min: 1,
    describe: 'Read at most this much at a time (the result is the same)',
  }),
} as const

/** Options of the binaries that can do one part of a run, beside others on other machines. */
export const shardOptions = {
  shard: shard({
    group: 'Shards',
    describe:
      'Only the records whose key hashes to K of N, K from 0; auto: as the scheduler numbers this task',
  }),
  shards: count({
    group: 'Shards',
    otherwise: undefined,
    min: 1,
    describe: "With auto: there are N shards, and the scheduler's number of this task is K",
  }),
} as const

/** What the help text of these binaries says of them. */
export const shardNotes = `--shard: K is the first 32 bits of MurmurHash3 x86_128 (seed 0) of the key's text, modulo N; a line
that is no JSON goes by the hash of the line, so that N tasks name it once. auto reads Slurm's
SLURM_ARRAY_TASK_ID with _MIN, _MAX, _STEP and _COUNT; with --shards N the task's id is K, as
Kubernetes' JOB_COMPLETION_INDEX is, and GNU parallel's PARALLEL_SEQ - 1. {shard} in the names of
files that are written stands for K.`
