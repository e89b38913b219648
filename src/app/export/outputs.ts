import { ByteBuilder } from '../../core/byte-builder.ts'
import { writeAll } from '../../files/fd-sink.ts'
import type { OutputFile } from '../../files/output-file.ts'
import { ConversationParquet, type ConversationRow } from '../../files/parquet-writer.ts'

/** Somewhere that rows go. */
export interface RowOutput {
  /** Where a row is drafted, its newline included. */
  readonly draft: ByteBuilder
  rows: number
  /** Takes the row that begins at `start` in the draft. */
  take(start: number): void
  /** Writes what is ready. */
  settle(): Promise<void>
  /** Ends the output and brings a file into its place. */
  commit(): Promise<void>
  /** Leaves a file as it was. */
  discard(): void
}

/** JSON lines, to standard output or into a file. */
export class LinesOutput implements RowOutput {
  readonly draft = new ByteBuilder(512 * 1024)
  rows = 0
  #fd: number
  #name: string
  #file: OutputFile | undefined

  constructor(fd: number, file?: OutputFile) {
    this.#file = file
    this.#fd = file?.fd ?? fd
    this.#name = file?.name ?? '<stdout>'
  }

  take(): void {
    this.rows++
  }

  async settle(): Promise<void> {
    try {
      if (this.draft.length > 0) await writeAll(this.#fd, this.draft.view(), this.#name)
    } finally {
      // What could not be written is not tried again: one message is enough.
      this.draft.length = 0
    }
  }

  async commit(): Promise<void> {
    await this.settle()
    this.#file?.commit()
  }

  discard(): void {
    this.#file?.discard()
  }
}

/** A Parquet file. */
export class ParquetOutput implements RowOutput {
  readonly draft = new ByteBuilder()
  rows = 0
  #file: OutputFile
  #parquet: ConversationParquet

  static async create(file: OutputFile): Promise<ParquetOutput> {
    return new ParquetOutput(file, await ConversationParquet.create(file.fd, file.name))
  }

  private constructor(file: OutputFile, parquet: ConversationParquet) {
    this.#file = file
    this.#parquet = parquet
  }

  take(start: number): void {
    const { bytes, length } = this.draft
    this.#parquet.add(JSON.parse(bytes.toString('utf8', start, length)) as ConversationRow)
    this.draft.length = start
    this.rows++
  }

  settle(): Promise<void> {
    return this.#parquet.settle()
  }

  async commit(): Promise<void> {
    await this.#parquet.finish()
    this.#file.commit()
  }

  discard(): void {
    this.#file.discard()
  }
}

/** `data.jsonl` as `data.train.jsonl`; `{split}` in the name stands for the part instead. */
export function partName(name: string, part: 'train' | 'eval'): string {
  if (name.includes('{split}')) return name.replaceAll('{split}', part)
  const dot = name.lastIndexOf('.')
  const hasExtension = dot > name.lastIndexOf('/') + 1
  return hasExtension ? `${name.slice(0, dot)}.${part}${name.slice(dot)}` : `${name}.${part}`
}
