import { closeSync } from 'node:fs'
import { writeFile } from 'node:fs/promises'
import type { Context } from '../cli/command.ts'
import { ClosedPipe, Interrupted, ioError } from '../core/tool-error.ts'
import { writeAll } from '../files/fd-sink.ts'
import { openPipe } from '../files/pipe-output.ts'

/**
 * Writes a run's counts as one JSON object; `-` is standard error.
 *
 * @throws ToolError where the file cannot be written
 */
export async function writeStats(
  context: Context,
  file: string | undefined,
  counts: object,
): Promise<void> {
  if (file === undefined) return
  const text = JSON.stringify(counts)
  if (file === '-') context.report.line(text)
  else {
    await write(context, file, `${text}\n`).catch((error: unknown) => {
      throw ioError(error, file, 'write')
    })
  }
}

async function write(context: Context, file: string, text: string): Promise<void> {
  const { report, interrupt } = context
  let fd: number | undefined
  try {
    fd = await openPipe(file, interrupt.reading)
    if (fd === undefined) await writeFile(file, text)
    else await writeAll(fd, Buffer.from(text), file)
  } catch (error) {
    if (!(error instanceof Interrupted || error instanceof ClosedPipe)) throw error
    // The run has an end of its own, which this is not to be.
    report.error('nobody reads this pipe: the counts are not written', 'io', { file })
  } finally {
    if (fd !== undefined) closeSync(fd)
  }
}
