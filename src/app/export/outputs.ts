import { ByteBuilder } from '../../core/byte-builder.ts'
import { BuilderSink } from '../../files/builder-sink.ts'
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
  discard(): Promise<void>
}

/** JSON lines, to standard output or into a file. */
export class LinesOutput implements RowOutput {
  readonly draft: ByteBuilder
  rows = 0
  #sink: BuilderSink
  #file: OutputFile | undefined

  constructor(fd: number, file?: OutputFile) {
    this.#file = file
    this.#sink = new BuilderSink(file?.fd ?? fd, file?.name ?? '<stdout>')
    this.draft = this.#sink.draft
  }

  take(): void {
    this.rows++
  }

  settle(): Promise<void> {
    return this.#sink.flushBehind()
  }

  async commit(): Promise<void> {
    await this.#sink.flush()
    this.#file?.commit()
  }

  async discard(): Promise<void> {
    await this.#sink.settled()
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

  discard(): Promise<void> {
    this.#file.discard()
    return Promise.resolve()
  }
}

/** `data.jsonl` as `data.train.jsonl`; `{split}` in the name stands for the part instead. */
export function partName(name: string, part: 'train' | 'eval'): string {
  if (name.includes('{split}')) return name.replaceAll('{split}', part)
  const dot = name.lastIndexOf('.')
  const hasExtension = dot > name.lastIndexOf('/') + 1
  return hasExtension ? `${name.slice(0, dot)}.${part}${name.slice(dot)}` : `${name}.${part}`
}
