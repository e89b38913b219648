import type { CompressionCodec, SchemaElement } from 'hyparquet'
import { ByteWriter, ParquetWriter } from 'hyparquet-writer'

/** A row of open-perfectblend. */
export interface BlendRow {
  conversations: { from: string | null; value: string | null }[] | null
  source: string | null
}

const text = (name: string): SchemaElement => ({
  name,
  type: 'BYTE_ARRAY',
  converted_type: 'UTF8',
  repetition_type: 'OPTIONAL',
})

/** The exact columns of open-perfectblend, as `datasets` writes them. */
const BLEND: SchemaElement[] = [
  { name: 'schema', num_children: 2 },
  { name: 'conversations', repetition_type: 'OPTIONAL', num_children: 1, converted_type: 'LIST' },
  { name: 'list', repetition_type: 'REPEATED', num_children: 1 },
  { name: 'element', repetition_type: 'OPTIONAL', num_children: 2 },
  text('from'),
  text('value'),
  text('source'),
]

interface ParquetOptions {
  codec?: CompressionCodec
  compress?: (bytes: Uint8Array) => Uint8Array
  rowGroup?: number
  pageSize?: number
  /** The rows stand in the file so many times. */
  times?: number
}

/** A Parquet file of open-perfectblend's form. */
export function blendParquet(rows: readonly BlendRow[], options: ParquetOptions = {}): Buffer {
  const columns = [
    { name: 'conversations', data: rows.map(({ conversations }) => conversations) },
    { name: 'source', data: rows.map(({ source }) => source) },
  ]
  return parquet(BLEND, columns, options)
}

/** A Parquet file of any columns. */
export function parquet(
  schema: SchemaElement[],
  columnData: { name: string; data: unknown[] }[],
  { codec = 'SNAPPY', compress, rowGroup = 1000, pageSize, times = 1 }: ParquetOptions = {},
): Buffer {
  const writer = new ByteWriter()
  const compressors = compress && { [codec]: compress }
  const file = new ParquetWriter({ writer, schema, codec, ...(compressors && { compressors }) })
  for (let time = 0; time < times; time++) {
    void file.write({ columnData, rowGroupSize: rowGroup, ...(pageSize && { pageSize }) })
  }
  void file.finish()
  return Buffer.from(writer.getBytes())
}
