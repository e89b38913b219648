import { fstatSync, statSync } from 'node:fs'
import type { Context } from '../../cli/command.ts'
import type { Clock } from '../../core/clock.ts'
import type { KeyRule } from '../../core/key.ts'
import type { Shard } from '../../core/shard.ts'
import { ToolError, usageError } from '../../core/tool-error.ts'
import { type AppendTarget, openAppend, standardOutput } from '../../files/append-target.ts'
import { LineWriter } from '../../files/line-writer.ts'
import { FileLock } from '../../files/lock.ts'
import { repairTail } from '../../files/repair-tail.ts'
import { UnsyncedBytes } from '../../files/unsynced-bytes.ts'
import { refuseCompleted } from '../completed-files.ts'
import { checkOutputs, operandsOrStdin, refuseInputs } from '../inputs.ts'
import type { FanoutOptions } from './options.ts'
import { Answered } from './resume.ts'

/** Milliseconds between two looks whether the outputs are still there. */
const LOOK_EVERY = 5000

/** Where a run writes, and what is there already. */
export interface Outputs {
  answers: LineWriter
  failures: LineWriter | undefined
  /** Undefined where nothing is resumed. */
  answered: Answered | undefined
  /** 1 where the file that is resumed had unusable lines. */
  exitCode: number
  /** Told why the answers cannot be written at the moment; undefined when they can again. */
  onBlocked: (reason: string | undefined) => void
  /** Told that another run writes the file now, or that nobody will find what is written. */
  onLost: (error: Error) => void
  close(): Promise<void>
}

/**
 * Opens what the run writes to, before anything is asked: lock, torn tail, and what is answered.
 *
 * @throws ToolError where the file exists and neither --resume nor --overwrite is given, is locked,
 *   is also an input, or cannot be written
 */
export async function openOutputs(
  context: Context,
  options: FanoutOptions,
  operands: readonly string[],
  clock: Clock,
  rule: KeyRule,
  shard: Shard | undefined,
): Promise<Outputs> {
  const { output, failures, stats, trace, completed, takeLock, overwrite } = options
  const own = [output, failures, stats, trace]
  refuseContradiction(options)
  refuseInputs(context, own, operandsOrStdin(operands))
  await refuseCompleted(context, [stats, trace], completed)
  checkOutputs(context, own, output === undefined)
  const lock =
    output !== undefined && mayBeLocked(output)
      ? await lockOf(context, output, clock, takeLock)
      : undefined
  try {
    const answered = await prepare(context, options, new Answered(rule, shard))
    const { reading } = context.interrupt
    const target =
      output === undefined
        ? standardOutput(context.stdout.fd)
        : await openAppend(output, overwrite, reading)
    if (failures !== undefined && isFilled(failures)) await mendTail(context, failures)
    if (trace !== undefined && !overwrite && isFilled(trace)) await mendTail(context, trace)
    const failureTarget =
      failures === undefined ? undefined : await openAppend(failures, false, reading)
    return new OpenOutputs(clock, options.sync, target, failureTarget, answered, lock)
  } catch (error) {
    lock?.release()
    throw error
  }
}

class OpenOutputs implements Outputs {
  readonly answers: LineWriter
  readonly failures: LineWriter | undefined
  readonly answered: Answered | undefined
  onBlocked: (reason: string | undefined) => void = () => {}
  onLost: (error: Error) => void = () => {}
  #targets: AppendTarget[]
  /** Those that had a name at the start. */
  #named: AppendTarget[]
  #lock: FileLock | undefined
  #stopLooking: () => void

  constructor(
    clock: Clock,
    syncEvery: number,
    target: AppendTarget,
    failures: AppendTarget | undefined,
    answered: Answered | undefined,
    lock: FileLock | undefined,
  ) {
    const writer = ({ fd, name, regular, reopen, empty }: AppendTarget): LineWriter =>
      new LineWriter(fd, name, {
        clock,
        regular,
        ...(reopen && { reopen }),
        ...(empty && { empty }),
        ...(reopen && regular && syncEvery > 0
          ? { unsynced: new UnsyncedBytes(name, empty ? 0 : fstatSync(fd).size) }
          : {}),
        syncEvery,
        onBlocked: (reason) => this.onBlocked(reason),
      })
    this.answers = writer(target)
    this.failures = failures === undefined ? undefined : writer(failures)
    this.answered = answered
    this.#targets = failures === undefined ? [target] : [target, failures]
    this.#named = this.#targets.filter(isNamed)
    this.#lock = lock
    if (lock !== undefined) lock.onLost = (error) => this.onLost(error)
    this.#stopLooking = clock.every(LOOK_EVERY, () => this.#look())
  }

  get exitCode(): number {
    return this.answered?.exitCode ?? 0
  }

  async close(): Promise<void> {
    this.#stopLooking()
    try {
      await this.answers.close()
      await this.failures?.close()
      const lost = this.#lost()
      if (lost !== undefined) throw lost
    } finally {
      for (const target of this.#targets) target.close()
      this.#lock?.release()
    }
  }

  #look(): void {
    const lost = this.#lost()
    if (lost !== undefined) this.onLost(lost)
  }

  #lost(): ToolError | undefined {
    const gone = this.#named.find((target) => !isNamed(target))
    if (gone === undefined) return undefined
    // As a repair does that knows of no writer under >>.
    const message =
      'the file was removed or replaced while the run wrote to it: the answers since then are in no file'
    return new ToolError('replaced', message, { place: { file: gone.name } })
  }
}

/** Whether an open file has a name; one of `TemporaryFile` has none from the start. */
function isNamed({ fd, regular }: AppendTarget): boolean {
  try {
    return !regular || fstatSync(fd).nlink > 0
  } catch {
    // What is wrong with it is told where it is written.
    return true
  }
}

function lockOf(
  context: Context,
  output: string,
  clock: Clock,
  takeOver: boolean,
): Promise<FileLock> {
  const onWatch = (holder: string): void =>
    context.report.warning(
      `the lock of ${output} is held by ${holder}: watching for 30 s whether it lives (--take-lock does not)`,
    )
  return FileLock.take(output, {
    clock,
    onWatch,
    interrupted: () => context.interrupt.signal !== undefined,
    takeOver,
  })
}

/** Mends the torn tail of a file that is resumed, and reads what is answered in it and elsewhere. */
async function prepare(
  context: Context,
  { output, overwrite, resume, completed }: FanoutOptions,
  answered: Answered,
): Promise<Answered | undefined> {
  const isResumed = output !== undefined && isFilled(output) && !overwrite
  if (isResumed) {
    if (!resume) {
      throw new ToolError(
        'exists',
        'the file exists: --resume goes on with it, --overwrite begins anew',
        { place: { file: output } },
      )
    }
    await mendTail(context, output)
  }
  const files = isResumed ? [output, ...completed] : completed
  if (!resume && files.length === 0) return undefined
  await answered.read(context, files)
  return answered
}

function refuseContradiction(options: FanoutOptions): void {
  const { output, resume, overwrite, completed, takeLock } = options
  if (resume && overwrite) throw usageError('--resume and --overwrite exclude each other')
  if (overwrite && completed.length > 0) {
    throw usageError('--completed and --overwrite exclude each other')
  }
  if (takeLock && output === undefined) throw usageError('--take-lock needs -o FILE')
  if (output !== undefined || !(resume || overwrite)) return
  throw usageError(
    `${resume ? '--resume' : '--overwrite'} needs -o FILE; in a pipeline dedupe-completed passes on ` +
      'what is not answered yet',
  )
}

/** Takes off what a kill has left at the end of a file, so that nothing is glued onto it. */
async function mendTail(context: Context, file: string): Promise<void> {
  const removedPath = `${file}.removed.jsonl`
  const tail = await repairTail(file, { removedPath, dryRun: false })
  if (tail.needsSplit) {
    throw new ToolError('needs-repair', 'the last line is damaged: run repair-truncated -i first', {
      place: { file },
    })
  }
  if (tail.removedBytes === 0) return
  const message = `a torn last line of ${tail.removedBytes} bytes was removed, it is kept in ${removedPath}`
  context.report.warning(message, 'truncated', { file })
}

/** A regular file with something in it. */
function isFilled(file: string): boolean {
  const stats = statSync(file, { throwIfNoEntry: false })
  return stats?.isFile() === true && stats.size > 0
}

/** Devices and pipes have as many writers as they like. */
function mayBeLocked(file: string): boolean {
  return statSync(file, { throwIfNoEntry: false })?.isFile() ?? true
}
