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

/** A page as it lies in the file, and what is needed to decode it. */
interface Page {
  header: PageHeader
  reader: { view: DataView; offset: number }
}

/** The levels and values of a page; without definition levels every value is there. */
export interface PageEntries {
  repetitionLevels: ArrayLike<number>
  definitionLevels: ArrayLike<number>
  values: DecodedArray
}

/** The pages of one leaf column of a row group, read one by one. */
export class ParquetPages {
  /** The column's path as hyparquet names it. */
  readonly path: string
  readonly schemaPath: SchemaTree[]
  #source: ColumnSource
  #dictionary: DecodedArray | undefined
  #at: number
  #end: number
  #window = new ArrayBuffer(0)
  #windowAt = 0

  constructor(source: ColumnSource) {
    const { meta, parquet, tree } = source
    this.#source = source
    this.path = meta.path_in_schema.join('.')
    this.schemaPath = parquet.treePath(tree, meta.path_in_schema)
    this.#at = Number(meta.dictionary_page_offset || meta.data_page_offset)
    this.#end = this.#at + Number(meta.total_compressed_size)
  }

  get ended(): boolean {
    return this.#at >= this.#end
  }

  /**
   * Decodes the next page onto rows, the last of which it may go on with.
   *
   * @throws Error where the page is damaged or cut
   */
  async appendRows(rows: unknown[]): Promise<void> {
    const page = await this.#next()
    if (page === undefined) return
    const { parquet } = this.#source
    const decoder = this.#decoder()
    const { data } = parquet.readPage(page.reader, page.header, decoder, this.#dictionary, rows, 0)
    if (data === undefined || data === rows) return
    for (let index = 0; index < data.length; index++) rows.push(data[index])
  }

  /**
   * Decodes the next page; undefined where it has no entries.
   *
   * @throws Error where the page is damaged or cut
   */
  async entries(): Promise<PageEntries | undefined> {
    const page = await this.#next()
    if (page === undefined) return undefined
    const { header, reader } = page
    const { parquet, meta } = this.#source
    const { view, offset } = reader
    const bytes = new Uint8Array(view.buffer, view.byteOffset + offset, view.byteLength - offset)
    const decoder = this.#decoder()
    const plain = header.data_page_header
    const encoding = plain?.encoding ?? header.data_page_header_v2?.encoding
    if (encoding === undefined) throw new Error(`a page of type ${header.type} is unknown`)
    const size = Number(header.uncompressed_page_size)
    const { repetitionLevels, definitionLevels, dataPage } = plain
      ? parquet.readDataPage(
          parquet.decompressPage(bytes, size, meta.codec, parquet.compressors),
          plain,
          decoder,
        )
      : parquet.readDataPageV2(bytes, header, decoder)
    const values = parquet.convertWithDictionary(dataPage, this.#dictionary, encoding, decoder)
    return { repetitionLevels, definitionLevels: definitionLevels ?? [], values }
  }

  /** The next page; undefined for that of the dictionary. */
  async #next(): Promise<Page | undefined> {
    const { header, length } = await this.#header()
    if (!(header.compressed_page_size >= 0)) throw new Error('the header of a page is damaged')
    const size = length + header.compressed_page_size
    const view = await this.#view(size)
    this.#at += size
    const page = { header, reader: { view, offset: length } }
    if (header.type !== 'DICTIONARY_PAGE') return page
    const { parquet } = this.#source
    const decoder = this.#decoder()
    const { data } = parquet.readPage(page.reader, header, decoder, undefined, [], 0)
    this.#dictionary = data && parquet.convert(data, decoder)
    return undefined
  }

  #decoder() {
    const { parquet, meta } = this.#source
    return {
      pathInSchema: meta.path_in_schema,
      type: meta.type,
      element: this.schemaPath.at(-1)!.element,
      schemaPath: this.schemaPath,
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
