import { writeFile } from 'node:fs/promises'
import type { Context } from '../cli/command.ts'
import { ioError } from '../core/tool-error.ts'

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
    await writeFile(file, `${text}\n`).catch((error: unknown) => {
      throw ioError(error, file, 'write')
    })
  }
}
