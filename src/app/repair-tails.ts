import type { Context } from '../cli/command.ts'
import { EXIT, ToolError } from '../core/tool-error.ts'
import { linkTarget } from '../files/in-place.ts'
import { FileLock } from '../files/lock.ts'
import { repairTail, type TailRepair } from '../files/repair-tail.ts'
import type { RepairOptions } from './repair.ts'
import { writeStats } from './stats.ts'

/** The program of repair-truncated --tail: looks at the end of each file alone. */
export async function repairTails(
  context: Context,
  options: RepairOptions,
  operands: readonly string[],
): Promise<number> {
  const counts = { files: 0, changed: 0, pieces: 0, removed_bytes: 0, framing_bytes: 0 }
  let worst: number = EXIT.ok
  for (const file of operands) {
    let lock: FileLock | undefined
    try {
      if (!options.check) lock = await lockTarget(context, await linkTarget(file))
      const result = await repairTail(file, {
        removedPath: options.removed,
        salvagedPath: options.salvaged,
        dryRun: options.check,
      })
      counts.files++
      if (result.changed) counts.changed++
      if (result.removedBytes > 0) counts.pieces++
      counts.removed_bytes += result.removedBytes
      counts.framing_bytes += result.framingBytes
      worst = Math.max(worst, tell(context, file, result, options.check))
    } catch (error) {
      if (!(error instanceof ToolError)) throw error
      context.report.error(error.message, error.code, error.place)
      worst = Math.max(worst, error.exitCode)
    } finally {
      lock?.release()
    }
  }
  await writeStats(context, options.stats, counts)
  return worst
}

/**
 * Keeps fanout-complete and other repairs from writing to a file meanwhile. Where no lock can be put
 * beside the file, nobody else has one either.
 *
 * @throws ToolError where another process holds the lock
 */
export async function lockTarget(context: Context, path: string): Promise<FileLock | undefined> {
  const onWatch = (holder: string): void =>
    context.report.note(`${path}: waiting to see whether ${holder} still lives`)
  try {
    return await FileLock.take(path, {
      clock: context.clock(1),
      onWatch,
      interrupted: () => context.interrupt.signal !== undefined,
    })
  } catch (error) {
    if (error instanceof ToolError && error.code === 'io') return undefined
    throw error
  }
}

/** Says what was done to a file; returns the exit code it calls for. */
function tell({ report }: Context, file: string, result: TailRepair, check: boolean): number {
  const { changed, removedBytes, removedAt, removedLine, framingBytes, addedNewline } = result
  if (result.needsSplit) {
    const message =
      'the last line holds several records: repair-truncated -i without --tail takes it apart'
    report.error(message, 'multiple-values', { file })
    return EXIT.data
  }
  const { bad } = result
  if (bad !== undefined) {
    const message =
      `the last line, at offset ${bad.start}, has its newline and is no record: ` +
      'repair-truncated -i without --tail takes it out'
    report.error(message, bad.code, { file })
  }
  const would = check ? 'would be ' : ''
  if (removedBytes > 0) {
    const where = check ? 'would be removed' : `removed, now in ${result.removedPath}`
    const message = `the last record is torn: ${removedBytes} bytes at offset ${removedAt} ${where}`
    report.warning(message, 'truncated', {
      file,
      ...(removedLine !== null && { line: removedLine, column: 1 }),
    })
  }
  const parts: string[] = []
  if (framingBytes > 0) parts.push(`${framingBytes} bytes of NULs and blanks ${would}dropped`)
  if (addedNewline) parts.push(`final newline ${would}added`)
  if (parts.length > 0) report.note(`${file}: ${parts.join(', ')}`)
  else if (!changed && bad === undefined) report.note(`${file}: nothing to repair at its end`)
  return bad !== undefined || (check && changed) ? EXIT.data : EXIT.ok
}
