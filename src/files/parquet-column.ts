import type { FileHandle } from 'node:fs/promises'
import type {
  ColumnMetaData,
  DecodedArray,
  PageHeader,
  Parquet,
  SchemaTree,
} from './parquet-library.ts'

/** Bytes of a column chunk that are read at once. */
const WINDOW = 1024 * 1024
/** Page headers are this long at most, if they hold no large statistics. */
const USUAL_HEADER = 16 * 1024

export interface ColumnSource {
  parquet: Parquet
  file: FileHandle
  tree: SchemaTree
  meta: ColumnMetaData
}

/** One leaf column of a row group, decoded page by page as its rows are taken. */
export class ParquetColumn {
  /** The column's path as hyparquet names it. */
  readonly path: string
  #source: ColumnSource
  #schemaPath: SchemaTree[]
  #repeated: boolean
  /** Rows decoded and not taken yet; of a repeated column the last one may go on in the next page. */
  #rows: unknown[] = []
  /** Rows at the beginning of `#rows` that were taken: moving up the rest each time would cost more. */
  #taken = 0
  #dictionary: DecodedArray | undefined
  #at: number
  #end: number
  #window = new ArrayBuffer(0)
  #windowAt = 0

  constructor(source: ColumnSource) {
    const { meta, parquet, tree } = source
    this.#source = source
    this.path = meta.path_in_schema.join('.')
    this.#schemaPath = parquet.treePath(tree, meta.path_in_schema)
    this.#repeated = this.#schemaPath.some(({ element }) => element.repetition_type === 'REPEATED')
    this.#at = Number(meta.dictionary_page_offset || meta.data_page_offset)
    this.#end = this.#at + Number(meta.total_compressed_size)
  }

  /**
   * Takes the next rows, `count` of them unless the column ends before.
   *
   * @throws Error where the pages are damaged or cut
   */
  async take(count: number): Promise<unknown[]> {
    while (this.#complete < count && this.#at < this.#end) await this.#decodePage()
    const rows = this.#rows.slice(this.#taken, this.#taken + count)
    this.#taken += rows.length
    if (this.#taken * 2 > this.#rows.length) {
      this.#rows.splice(0, this.#taken)
      this.#taken = 0
    }
    return rows
  }

  get #complete(): number {
    const mayGoOn = this.#repeated && this.#at < this.#end ? 1 : 0
    return this.#rows.length - this.#taken - mayGoOn
  }

  async #decodePage(): Promise<void> {
    const { parquet } = this.#source
    const { header, length } = await this.#header()
    if (!(header.compressed_page_size >= 0)) throw new Error('the header of a page is damaged')
    const size = length + header.compressed_page_size
    const view = await this.#view(size)
    this.#at += size
    const decoder = this.#decoder()
    const reader = { view, offset: length }
    const { data } = parquet.readPage(reader, header, decoder, this.#dictionary, this.#rows, 0)
    if (header.type === 'DICTIONARY_PAGE') {
      this.#dictionary = data && parquet.convert(data, decoder)
    } else if (data !== undefined && data !== this.#rows) {
      for (let index = 0; index < data.length; index++) this.#rows.push(data[index])
    }
  }

  #decoder() {
    const { parquet, meta } = this.#source
    return {
      pathInSchema: meta.path_in_schema,
      type: meta.type,
      element: this.#schemaPath.at(-1)!.element,
      schemaPath: this.#schemaPath,
      codec: meta.codec,
      compressors: parquet.compressors,
      parsers: parquet.parsers,
    }
  }

  async #header(): Promise<{ header: PageHeader; length: number }> {
    for (let size = USUAL_HEADER; ; size *= 8) {
      const wanted = Math.min(size, this.#end - this.#at)
      const reader = { view: await this.#view(wanted), offset: 0 }
      try {
        return { header: this.#source.parquet.pageHeader(reader), length: reader.offset }
      } catch (error) {
        // A header with statistics over large values reaches beyond what was read.
        if (!(error instanceof RangeError) || wanted === this.#end - this.#at) throw error
      }
    }
  }

  /** The next bytes of the chunk. What is decoded may point into them: they are never reused. */
  async #view(length: number): Promise<DataView> {
    const inWindow = this.#at - this.#windowAt
    if (inWindow + length > this.#window.byteLength) {
      const size = Math.min(Math.max(length, WINDOW), this.#end - this.#at)
      if (size < length) throw new Error('a page reaches beyond its column')
      const bytes = Buffer.alloc(size)
      await readFully(this.#source.file, bytes, this.#at)
      this.#window = bytes.buffer
      this.#windowAt = this.#at
    }
    return new DataView(this.#window, this.#at - this.#windowAt, length)
  }
}

/** Fills `into` from a place in the file; @throws Error where the file ends before. */
export async function readFully(file: FileHandle, into: Buffer, position: number): Promise<void> {
  let filled = 0
  while (filled < into.length) {
    const { bytesRead } = await file.read(into, filled, into.length - filled, position + filled)
    if (bytesRead === 0) throw new Error('the file ends before its data does')
    filled += bytesRead
  }
}
