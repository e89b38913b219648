import type { Context } from '../../cli/command.ts'
import type { ByteReader } from '../../core/byte-reader.ts'
import { hasBom } from '../../core/file-kind.ts'
import { EXIT, ToolError } from '../../core/tool-error.ts'
import { PrefixedReader } from '../../files/byte-reader.ts'
import type { Input } from '../../files/input.ts'
import { blocksForOne } from '../block-memory.ts'
import { InterruptibleReader, openBlocks } from '../inputs.ts'
import { jsonlRows } from './jsonl-rows.ts'
import type { ColumnWish } from './parquet-rows.ts'
import type { ReadProgress } from './read-progress.ts'
import type { RowHandler } from './row-handler.ts'

/** What a Parquet file begins and ends with. */
const PARQUET_MAGIC = Buffer.from('PAR1')

/** White space at a file's beginning is looked through as far as this. */
const HEAD = 4096

export interface SourceOptions {
  /** Files that are written to, which no input may be. */
  outputs: readonly (string | undefined)[]
  readSize: number | undefined
  /** What is wanted of a file with columns. */
  columns: ColumnWish
  progress: ReadProgress
}

/**
 * Gives the rows of one file to the handler. What the file is, its first bytes tell: Parquet, one
 * JSON array, or lines.
 *
 * @throws ToolError where it cannot be read, Interrupted when a signal came
 */
export async function readRows(
  context: Context,
  operand: string,
  handler: RowHandler,
  options: SourceOptions,
): Promise<void> {
  const { input } = await openBlocks(context, operand, { outputs: options.outputs })
  try {
    const source = new InterruptibleReader(input.reader, context)
    const head = await readHead(source)
    const reader = new PrefixedReader(head, source)
    const { name } = input
    options.progress.tells((size) => input.bytesRead() / size)
    if (head.subarray(0, PARQUET_MAGIC.length).equals(PARQUET_MAGIC)) {
      const { parquetRows } = await import('./parquet-rows.ts')
      await parquetRows(context, parquetPath(operand, input), name, handler, options)
    } else if (firstContent(head) === 0x5b) {
      const { arrayRows } = await import('./array-rows.ts')
      await arrayRows(reader, name, handler)
    } else await jsonlRows(reader, name, handler, blocksForOne(input, options.readSize))
  } finally {
    await input.close()
  }
}

/** Parquet is read from its end: it must be a file. */
function parquetPath(operand: string, input: Input): string {
  const place = { file: input.name }
  if (input.compression !== undefined) {
    throw new ToolError(
      'parquet-compressed',
      `decompress the Parquet file first (${input.compression})`,
      { place },
    )
  }
  if (operand === '-' || !input.stats.isFile()) {
    throw new ToolError(
      'parquet-pipe',
      'Parquet is read from its end: name the file as an operand',
      {
        place,
      },
    )
  }
  return operand
}

async function readHead(reader: ByteReader): Promise<Buffer> {
  const head = Buffer.alloc(HEAD)
  let filled = 0
  while (filled < HEAD) {
    try {
      const count = await reader.read(head, filled, HEAD - filled)
      if (count === 0) break
      filled += count
    } catch (error) {
      // Damage of a compressed stream comes again when it is read on.
      if (!(error instanceof ToolError) || error.exitCode !== EXIT.data) throw error
      break
    }
    if (filled >= PARQUET_MAGIC.length && firstContent(head.subarray(0, filled)) !== undefined)
      break
  }
  return head.subarray(0, filled)
}

/** The first byte that is neither white space nor part of a byte order mark. */
function firstContent(head: Buffer): number | undefined {
  let at = hasBom(head, 0, head.length) ? 3 : 0
  while (at < head.length && (head[at] === 0x20 || (head[at]! >= 0x09 && head[at]! <= 0x0d))) at++
  return head[at]
}
