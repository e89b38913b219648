import { isUtf8 } from 'node:buffer'
import type { Context } from '../../cli/command.ts'
import { JsonBytes } from '../../core/json-bytes.ts'
import { JsonScanner, PADDING } from '../../core/json-scan.ts'
import { draftBytes } from '../../core/kernel.ts'
import { Interrupted } from '../../core/tool-error.ts'
import {
  damageText,
  type ParquetBatch,
  type ParquetDamage,
  ParquetFile,
} from '../../files/parquet-file.ts'
import { noShape } from '../no-shape.ts'
import type { ReadProgress } from './read-progress.ts'
import type { RowHandler } from './row-handler.ts'

/** What is wanted of a file with columns. */
export interface ColumnWish {
  /** At least one of these must be there. */
  prompts: readonly string[]
  /** The prompt may lie inside of one, so that having it does not tell the shape. */
  inside: boolean
  /** These are read where they are there. */
  others: readonly string[]
}

/**
 * Gives the rows of a Parquet file as JSON objects of the columns that are wanted.
 *
 * @throws ToolError where it has no column that holds a prompt, or cannot be read
 */
export async function parquetRows(
  context: Context,
  path: string,
  name: string,
  handler: RowHandler,
  { columns: wish, progress }: { columns: ColumnWish; progress: ReadProgress },
): Promise<void> {
  const file = await ParquetFile.open(path, name)
  try {
    const has = (column: string): boolean => file.columns.includes(column)
    if (!wish.prompts.some(has)) throw noShape(name, wish.prompts, file.columns, 'columns')
    if (!wish.inside) handler.shapeKnown()
    const wanted = new Set([...wish.prompts, ...wish.others].filter(has))
    const rows = new BatchRows(name, handler)
    for await (const batch of file.batches([...wanted])) {
      if (context.interrupt.signal !== undefined) throw new Interrupted()
      progress.tells(() => batch.firstRow / file.rows)
      if ('message' in batch) rows.lost(batch)
      else rows.give(batch)
      await handler.settle()
      if (handler.done) return
    }
  } finally {
    await file.close()
  }
}

class BatchRows {
  #name: string
  #handler: RowHandler
  #json = new JsonBytes(1024 * 1024, draftBytes)
  #scanner = new JsonScanner()

  constructor(name: string, handler: RowHandler) {
    this.#name = name
    this.#handler = handler
  }

  give(batch: ParquetBatch): void {
    const { firstRow, count } = batch
    const json = this.#json
    let ends: number[]
    try {
      ends = this.#write(batch)
    } catch (error) {
      this.lost({ firstRow, count, message: damageText(error, this.#name) })
      return
    }
    json.reserve(PADDING)
    this.#scanner.use(json.bytes)
    const allUtf8 = isUtf8(json.view())
    for (let index = 0, start = 0; index < count && !this.#handler.done; index++) {
      const end = ends[index]!
      this.#row(start, end, firstRow + index, allUtf8)
      start = end + 1
    }
  }

  /** Writes the rows; returns where each ends. Values of a damaged file may be of any kind. */
  #write({ count, columns }: ParquetBatch): number[] {
    const json = this.#json
    const ends: number[] = []
    json.length = 0
    for (let index = 0; index < count; index++) {
      json.object(columns.map(({ name, values }) => [name, values[index]] as const))
      ends.push(json.length)
      json.byte(0x0a)
    }
    return ends
  }

  lost({ firstRow, count, message }: ParquetDamage): void {
    const place = { file: this.#name, row: firstRow + 1, offset: firstRow }
    const text = `${count} rows from here on cannot be read: ${message}`
    this.#handler.lost('parquet-damaged', text, count, place)
  }

  #row(start: number, end: number, index: number, isAllUtf8: boolean): void {
    const { bytes } = this.#json
    const range = { start, end }
    const place = { file: this.#name, row: index + 1, offset: index }
    if (!isAllUtf8 && !isUtf8(bytes.subarray(start, end))) {
      this.#handler.broken('utf8', 'a text of the row is no UTF-8', bytes, range, place)
    } else if (this.#scanner.scan(start, end)) {
      this.#handler.row(this.#scanner, bytes, range, place)
    } else {
      this.#handler.broken('syntax', 'a JSON column of the row holds no JSON', bytes, range, place)
    }
  }
}
