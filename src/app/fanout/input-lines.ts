import { createReadStream } from 'node:fs'
import { stat } from 'node:fs/promises'
import type { Context } from '../../cli/command.ts'
import { splitLines, type TextLine } from '../../streams/split-lines.ts'
import { openBlocks, operandsOrStdin, reportTrouble } from '../inputs.ts'

/**
 * Requests take far longer than reading: what is read ahead only waits in memory, grows old there,
 * and makes the garbage collector copy it.
 */
const READ_SIZE = 16 * 1024

/**
 * The lines of all inputs, one after the other.
 *
 * @param onTrouble gets the exit code of an input that could not be read
 */
export async function* inputLines(
  context: Context,
  operands: readonly string[],
  options: { readSize: number | undefined },
  onTrouble: (exitCode: number) => void,
): AsyncGenerator<TextLine, void, void> {
  for (const operand of operandsOrStdin(operands)) {
    try {
      const { input, blocks } = await openBlocks(context, operand, {
        blockSize: options.readSize ?? READ_SIZE,
      })
      yield* splitLines(blocks, input.name, {
        onCut: (line) => {
          const message = 'the compressed data ends inside the line, which is not asked'
          const place = { file: input.name, line, column: 1 }
          context.report.warning(message, `${input.compression}-truncated`, place)
        },
      })
      await input.close()
    } catch (error) {
      onTrouble(reportTrouble(context, error))
    }
  }
}

/** The number of lines in all files; undefined where one is standard input, no file or compressed. */
export async function countLines(operands: readonly string[]): Promise<number | undefined> {
  let count = 0
  for (const file of operands) {
    const stats = file === '-' ? undefined : await stat(file).catch(() => undefined)
    if (!stats?.isFile()) return undefined
    const lines = await linesOf(file).catch(() => undefined)
    if (lines === undefined) return undefined
    count += lines
  }
  return operands.length === 0 ? undefined : count
}

async function linesOf(file: string): Promise<number | undefined> {
  let lines = 0
  let last = 0x0a
  let atStart = true
  for await (const chunk of createReadStream(file, { highWaterMark: 1024 * 1024 })) {
    const bytes = chunk as Buffer
    if (atStart && bytes.length > 1 && bytes[0] === 0x1f && bytes[1] === 0x8b) return undefined
    atStart = false
    for (let at = bytes.indexOf(0x0a); at >= 0; at = bytes.indexOf(0x0a, at + 1)) lines++
    last = bytes[bytes.length - 1]!
  }
  return last === 0x0a ? lines : lines + 1
}
