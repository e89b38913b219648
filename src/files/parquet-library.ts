import { RawJson } from '../core/json-bytes.ts'

/** Text stays bytes, and JSON text stays as it is written. */
const PARSERS = {
  stringFromBytes: (bytes: Uint8Array): Uint8Array => bytes,
  jsonFromBytes: (bytes: Uint8Array | undefined): RawJson | undefined =>
    bytes && new RawJson(bytes),
}

/**
 * The one importer of hyparquet and its decompressors, loaded late: only when a Parquet file is read.
 *
 * Pages are read one by one, which hyparquet's own row reader does not offer: it holds a whole row
 * group, and writers such as pyarrow put a million rows into one. Hence the modules below its index,
 * and hence the exact version in package.json.
 */
export async function loadParquet() {
  const [index, column, data, assemble, schema, convert, { compressors }] = await Promise.all([
    import('hyparquet'),
    import('hyparquet/src/column.js'),
    import('hyparquet/src/datapage.js'),
    import('hyparquet/src/assemble.js'),
    import('hyparquet/src/schema.js'),
    import('hyparquet/src/convert.js'),
    import('hyparquet-compressors'),
  ])
  return {
    readMetadata: index.parquetMetadataAsync,
    schemaTree: index.parquetSchema,
    pageHeader: column.parquetHeader,
    readPage: column.readPage,
    decompressPage: data.decompressPage,
    readDataPage: data.readDataPage,
    readDataPageV2: data.readDataPageV2,
    convert: convert.convert,
    convertWithDictionary: convert.convertWithDictionary,
    parsers: { ...convert.DEFAULT_PARSERS, ...PARSERS },
    assembleNested: assemble.assembleNested,
    treePath: schema.getTreePath,
    compressors,
  }
}

export type Parquet = Awaited<ReturnType<typeof loadParquet>>

export type {
  ColumnMetaData,
  DecodedArray,
  FileMetaData,
  PageHeader,
  RowGroup,
  SchemaTree,
} from 'hyparquet'
