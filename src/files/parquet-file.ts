import { type FileHandle, open } from 'node:fs/promises'
import { errnoOf, ioError, ToolError } from '../core/tool-error.ts'
import { ParquetColumn } from './parquet-column.ts'
import {
  type FileMetaData,
  loadParquet,
  type Parquet,
  type RowGroup,
  type SchemaTree,
} from './parquet-library.ts'
import { readFully } from './parquet-pages.ts'
import { ParquetStructs, structList } from './parquet-structs.ts'

/** Rows that are put together at once: their values are in memory, and a page of each column. */
const BATCH = 256

/** Some rows of a file: one list of values per column. */
export interface ParquetBatch {
  /** The first row's number in the file, from 0. */
  firstRow: number
  count: number
  columns: { name: string; values: unknown[] }[]
}

/** Rows that cannot be read, to the end of their row group. */
export interface ParquetDamage {
  firstRow: number
  count: number
  message: string
}

/** A Parquet file, read batch by batch in memory that does not grow with the file. */
export class ParquetFile {
  readonly rows: number
  /** Names of its top-level columns. */
  readonly columns: string[]
  #parquet: Parquet
  #file: FileHandle
  #name: string
  #metadata: FileMetaData
  #tree: SchemaTree

  /**
   * Opens a file by its path and reads its footer.
   *
   * @param name how messages call it
   * @throws ToolError `io`, or `parquet-damaged` where it is cut or no Parquet
   */
  static async open(path: string, name: string): Promise<ParquetFile> {
    const parquet = await loadParquet()
    const file = await open(path).catch((error: unknown) => {
      throw ioError(error, name, 'read')
    })
    try {
      return new ParquetFile(parquet, file, name, await readFooter(parquet, file))
    } catch (error) {
      await file.close()
      throw new ToolError('parquet-damaged', footerProblem(damageText(error, name)), {
        exitCode: 1,
        place: { file: name },
      })
    }
  }

  private constructor(parquet: Parquet, file: FileHandle, name: string, metadata: FileMetaData) {
    this.#parquet = parquet
    this.#file = file
    this.#name = name
    this.#metadata = metadata
    this.#tree = parquet.schemaTree(metadata)
    this.rows = Number(metadata.num_rows)
    this.columns = this.#tree.children.map(({ element }) => element.name)
    if (this.columns.includes(undefined!)) throw new Error('a column in its footer has no name')
  }

  /** Gives the rows in batches, and damage where a row group cannot be read on. */
  async *batches(
    names: readonly string[],
  ): AsyncGenerator<ParquetBatch | ParquetDamage, void, void> {
    let firstRow = 0
    for (const group of this.#metadata.row_groups) {
      const end = firstRow + Number(group.num_rows)
      try {
        const columns = names.map((name) => this.#column(group, name))
        while (firstRow < end) {
          const count = Math.min(BATCH, end - firstRow)
          const values = await Promise.all(columns.map((column) => column.take(count)))
          yield {
            firstRow,
            count,
            columns: columns.map(({ name }, index) => ({ name, values: values[index]! })),
          }
          firstRow += count
        }
      } catch (error) {
        yield { firstRow, count: end - firstRow, message: damageText(error, this.#name) }
      }
      firstRow = end
    }
  }

  async close(): Promise<void> {
    await this.#file.close()
  }

  /** A top-level column of a row group, its leaves put together. */
  #column(
    group: RowGroup,
    name: string,
  ): { name: string; take(count: number): Promise<unknown[]> } {
    const parquet = this.#parquet
    const tree = this.#tree.children.find(({ element }) => element.name === name)!
    const sources = group.columns.flatMap(({ meta_data: meta }) =>
      meta?.path_in_schema[0] === name
        ? [{ parquet, file: this.#file, tree: this.#tree, meta }]
        : [],
    )
    const levels = structList(tree)
    if (levels !== undefined && sources.length > 0) {
      const structs = new ParquetStructs(sources, levels)
      return { name, take: (count) => structs.take(count) }
    }
    const leaves = sources.map((source) => new ParquetColumn(source))
    return {
      name,
      async take(count) {
        const parts = new Map<string, unknown[]>()
        for (const leaf of leaves) {
          const rows = await leaf.take(count)
          if (rows.length < count) throw new Error(`the column ${leaf.path} has too few rows`)
          parts.set(leaf.path, rows)
        }
        if (tree.children.length > 0) parquet.assembleNested(parts, tree, parquet.parsers)
        return parts.get(name) ?? []
      },
    }
  }
}

async function readFooter(parquet: Parquet, file: FileHandle): Promise<FileMetaData> {
  const { size } = await file.stat()
  const slice = async (start: number, end = size): Promise<ArrayBuffer> => {
    const bytes = Buffer.alloc(end - start)
    await readFully(file, bytes, start)
    return bytes.buffer
  }
  return parquet.readMetadata({ byteLength: size, slice }, { geoparquet: false })
}

/**
 * What an error of reading a file says of it. Whatever the decoders stumble over is damage of the file:
 * they trust what it says, and check little.
 *
 * @throws the error where it is the system's, or one of ours
 */
export function damageText(error: unknown, name: string): string {
  if (errnoOf(error) !== undefined) throw ioError(error, name, 'read')
  if (!(error instanceof Error) || error instanceof ToolError || isOutOfMemory(error)) throw error
  // Those say what the decoder did, such as 'Cannot read properties of undefined' or 'page header is undefined'.
  const isTold = error.constructor === Error && !/\bundefined\b|NaN/.test(error.message)
  return isTold ? error.message : 'its footer or a page is damaged'
}

function isOutOfMemory({ message }: Error): boolean {
  return message.includes('allocation failed')
}

function footerProblem(message: string): string {
  return /footer !=|too short/.test(message)
    ? 'the Parquet file is cut short: it does not end in a footer; fetch it again'
    : `the Parquet file is damaged: ${message}`
}
