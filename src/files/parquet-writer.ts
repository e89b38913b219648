import type { SchemaElement } from 'hyparquet'
import type { ByteWriter, ParquetWriter } from 'hyparquet-writer'
import { writeAll } from './fd-sink.ts'

/** Rows of a row group: what Hugging Face's `datasets` writes, and readers of it expect. */
const ROW_GROUP = 1000

/** The members of a message that have a column. */
export interface ParquetMessage {
  role: string
  content: string
  reasoning_content?: string
}

export interface ConversationRow {
  id: string
  conversations: ParquetMessage[]
}

const text = (name: string, required = false): SchemaElement => ({
  name,
  type: 'BYTE_ARRAY',
  converted_type: 'UTF8',
  logical_type: { type: 'STRING' },
  repetition_type: required ? 'REQUIRED' : 'OPTIONAL',
})

/** id, and conversations as list<struct<role, content, reasoning_content>>. */
const SCHEMA: SchemaElement[] = [
  { name: 'schema', num_children: 2 },
  text('id', true),
  {
    name: 'conversations',
    repetition_type: 'OPTIONAL',
    num_children: 1,
    converted_type: 'LIST',
    logical_type: { type: 'LIST' },
  },
  { name: 'list', repetition_type: 'REPEATED', num_children: 1 },
  { name: 'element', repetition_type: 'OPTIONAL', num_children: 3 },
  text('role'),
  text('content'),
  text('reasoning_content'),
]

/** Writes conversations as Parquet; the one importer of hyparquet-writer, loaded late. */
export class ConversationParquet {
  #writer: ParquetWriter
  #bytes: ByteWriter
  #fd: number
  #name: string
  #rows: ConversationRow[] = []

  static async create(fd: number, name: string): Promise<ConversationParquet> {
    const library = await import('hyparquet-writer')
    const bytes = new library.ByteWriter()
    const writer = new library.ParquetWriter({
      writer: bytes,
      schema: SCHEMA,
      createdBy: 'completion-pipes',
    })
    return new ConversationParquet(fd, name, bytes, writer)
  }

  private constructor(fd: number, name: string, bytes: ByteWriter, writer: ParquetWriter) {
    this.#fd = fd
    this.#name = name
    this.#bytes = bytes
    this.#writer = writer
  }

  add(row: ConversationRow): void {
    this.#rows.push(row)
  }

  /** Writes the row groups that are full. */
  async settle(): Promise<void> {
    while (this.#rows.length >= ROW_GROUP) await this.#writeGroup()
  }

  async finish(): Promise<void> {
    if (this.#rows.length > 0) await this.#writeGroup()
    await this.#writer.finish()
    await this.#drain()
  }

  async #writeGroup(): Promise<void> {
    const rows = this.#rows.splice(0, ROW_GROUP)
    await this.#writer.write({
      columnData: [
        { name: 'id', data: rows.map(({ id }) => id) },
        { name: 'conversations', data: rows.map(({ conversations }) => conversations) },
      ],
      rowGroupSize: rows.length,
    })
    await this.#drain()
  }

  /** Empties the writer's buffer; the offset that it counts goes on. */
  async #drain(): Promise<void> {
    await writeAll(this.#fd, this.#bytes.getBytes(), this.#name)
    this.#bytes.index = 0
  }
}
