import { readFileSync, realpathSync } from 'node:fs'
import { basename } from 'node:path'
import { fileURLToPath } from 'node:url'
import { ClosedPipe, EXIT, errnoOf, Interrupted, ioError, ToolError } from '../core/tool-error.ts'
import { parseArguments } from './arguments.ts'
import type { Command, Context } from './command.ts'
import { Interrupt, SIGNAL_EXIT, type SignalName } from './interrupt.ts'
import { optionName } from './option.ts'
import { Reporter } from './reporter.ts'
import { systemClock } from './system-clock.ts'
import { packageVersion } from './version.ts'

/** Node's exit code where the event loop has run out while the top-level await still waits. */
const UNSETTLED = 13

/**
 * Runs a command as this process, if its file is what node was started with, and sets the exit code;
 * the process ends when all is written.
 *
 * @param url the `import.meta.url` of the binary, which tests import without running it
 */
export async function main(command: Command, url: string): Promise<void> {
  if (process.argv[1] === undefined || realpathSync(process.argv[1]) !== fileURLToPath(url)) return
  // A message that nobody reads must not end the run with an exception.
  process.stderr.on('error', () => {})
  const interrupt = new Interrupt()
  const ignoresHup = isUnderNohup()
  interrupt.noteUsr1()
  for (const signal of Object.keys(SIGNAL_EXIT) as SignalName[]) {
    process.on(signal, () => {
      if (signal !== 'SIGHUP' || !ignoresHup) interrupt.raise(signal)
    })
  }
  const report = new Reporter(command.name, (text) => process.stderr.write(text))
  process.on('exit', () => {
    if (process.exitCode !== UNSETTLED) return
    report.error(
      `the run waits for nothing: this is a bug in ${command.name}, please report it`,
      'bug',
    )
    process.exitCode = EXIT.trouble
  })
  process.exitCode = await runCommand(command, process.argv.slice(2), {
    env: process.env,
    stdin: { fd: 0, stream: () => process.stdin },
    stdout: { fd: 1 },
    print: printToStdout,
    report,
    terminal: liveTerminal(),
    onUsr1: (callback) => void process.on('SIGUSR1', callback),
    interrupt,
    clock: systemClock,
    random: Math.random,
  })
}

/**
 * Runs a command with the streams, clock and randomness given.
 *
 * @returns the exit code: 0, 1 or 2, or 128 + the number of the signal that ended it
 */
export async function runCommand(
  command: Command,
  argv: readonly string[],
  context: Context,
): Promise<number> {
  const { report, interrupt } = context
  try {
    const code = (await information(command, argv, context)) ?? (await run(command, argv, context))
    return interrupt.signal === undefined ? code : SIGNAL_EXIT[interrupt.signal]
  } catch (error) {
    if (error instanceof ClosedPipe) return EXIT.ok
    if (error instanceof Interrupted) return SIGNAL_EXIT[interrupt.signal ?? 'SIGINT']
    if (!(error instanceof ToolError)) {
      const { message, stack } = error instanceof Error ? error : new Error(String(error))
      report.error(`${message}: this is a bug in ${command.name}, please report it`, 'bug')
      if (context.env.COMPLETION_PIPES_DEBUG) report.line(stack ?? '')
      return EXIT.trouble
    }
    const hint = error.code === 'usage' ? ` (see ${command.name} --help)` : ''
    report.error(error.message + hint, error.code, error.place)
    return error.exitCode
  }
}

async function run(command: Command, argv: readonly string[], context: Context): Promise<number> {
  const { options, operands } = parseArguments(command.options, argv)
  context.report.quiet = options.quiet === true
  context.report.verbose = options.verbose === true
  return command.run(context, options, operands)
}

/** Answers --help, --version and --completion; undefined where none is asked for. */
async function information(
  command: Command,
  argv: readonly string[],
  context: Context,
): Promise<number | undefined> {
  const text = await informationText(command, argv)
  if (text === undefined) return undefined
  await context.print(text)
  return EXIT.ok
}

async function informationText(
  command: Command,
  argv: readonly string[],
): Promise<string | undefined> {
  const end = argv.indexOf('--')
  const options = end < 0 ? argv : argv.slice(0, end)
  if (options.includes('--version'))
    return `${command.name} (completion-pipes) ${packageVersion()}\n`
  if (options.includes('--help') || options.includes('-h')) {
    // yargs costs 80 ms to load.
    const { helpText } = await import('./help.ts')
    return `${await helpText(command, process.stdout.columns ?? 80)}\n`
  }
  const at = options.findIndex((option) => option.split('=')[0] === optionName('completion'))
  if (at < 0) return undefined
  const { completionScript } = await import('./completion.ts')
  const shell = options[at]!.includes('=') ? options[at]!.split('=')[1]! : (options[at + 1] ?? '')
  return completionScript(command, shell)
}

/**
 * Whether nohup started this process, or the script that did. Node resets the ignored signals that
 * it inherits: traces are the variable in which shells (dash does not) leave the path of the command
 * that they ran, and that the parent ignores HUP itself.
 */
function isUnderNohup(): boolean {
  if (basename(process.env._ ?? '') === 'nohup') return true
  try {
    const status = readFileSync(`/proc/${process.ppid}/status`, 'utf8')
    const ignored = /^SigIgn:\s*([0-9a-f]+)$/m.exec(status)?.[1] ?? '0'
    return (BigInt(`0x${ignored}`) & 1n) === 1n
  } catch {
    return false
  }
}

/** Standard error, where it is a terminal with a movable cursor and nobody asked for quiet. */
function liveTerminal(): { readonly columns: number } | undefined {
  const { stderr, env } = process
  const plain = env.TERM === 'dumb' || (env.NO_COLOR ?? '') !== ''
  if (!stderr.isTTY || plain) return undefined
  return { columns: stderr.columns || 80 }
}

function printToStdout(text: string): Promise<void> {
  return new Promise((resolve, reject) => {
    const failed = (error: Error): void => {
      reject(errnoOf(error) === 'EPIPE' ? new ClosedPipe() : ioError(error, '<stdout>', 'write'))
    }
    process.stdout.once('error', failed)
    process.stdout.write(text, (error) => (error ? failed(error) : resolve()))
  })
}
