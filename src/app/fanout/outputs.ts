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
  /** Told that another run writes the file now. */
  onLockLost: (error: Error) => void
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
  const { output, failures, stats, trace, completed, takeLock } = options
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
    const target =
      output === undefined
        ? standardOutput(context.stdout.fd)
        : openAppend(output, options.overwrite)
    if (failures !== undefined && isFilled(failures)) await mendTail(context, failures)
    const failureTarget = failures === undefined ? undefined : openAppend(failures, false)
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
  onLockLost: (error: Error) => void = () => {}
  #targets: AppendTarget[]
  #lock: FileLock | undefined

  constructor(
    clock: Clock,
    syncEvery: number,
    target: AppendTarget,
    failures: AppendTarget | undefined,
    answered: Answered | undefined,
    lock: FileLock | undefined,
  ) {
    const writer = ({ fd, name, regular, reopen }: AppendTarget): LineWriter =>
      new LineWriter(fd, name, {
        clock,
        regular,
        ...(reopen && { reopen }),
        ...(reopen && regular && syncEvery > 0
          ? { unsynced: new UnsyncedBytes(name, fstatSync(fd).size) }
          : {}),
        syncEvery,
        onBlocked: (reason) => this.onBlocked(reason),
      })
    this.answers = writer(target)
    this.failures = failures === undefined ? undefined : writer(failures)
    this.answered = answered
    this.#targets = failures === undefined ? [target] : [target, failures]
    this.#lock = lock
    if (lock !== undefined) lock.onLost = (error) => this.onLockLost(error)
  }

  get exitCode(): number {
    return this.answered?.exitCode ?? 0
  }

  async close(): Promise<void> {
    try {
      await this.answers.close()
      await this.failures?.close()
    } finally {
      for (const target of this.#targets) target.close()
      this.#lock?.release()
    }
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
      `${output}.lock is held by ${holder}: watching for 30 s whether it lives (--take-lock does not)`,
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
