import assert from 'node:assert/strict'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import fc from 'fast-check'
import { ParquetFile } from '../../src/files/parquet-file.ts'
import { type BlendRow, blendParquet } from '../support/parquet.ts'
import { newFolder } from '../support/run.ts'

const text = fc.option(fc.string({ unit: 'grapheme', maxLength: 12 }), { nil: null })
const row: fc.Arbitrary<BlendRow> = fc.record({
  conversations: fc.array(fc.record({ from: text, value: text }), { maxLength: 4 }),
  source: text,
})

/** Values as bytes come back as text. */
function plain(value: unknown): unknown {
  if (value instanceof Uint8Array) return Buffer.from(value).toString()
  if (Array.isArray(value)) return value.map(plain)
  if (value === null || value === undefined) return null
  if (typeof value !== 'object') return value
  return Object.fromEntries(Object.entries(value).map(([name, inner]) => [name, plain(inner)]))
}

test('rows come back whole, whatever the sizes of pages and row groups', async () => {
  const path = join(newFolder(), 'd.parquet')
  const sizes = fc.record({
    rowGroup: fc.integer({ min: 1, max: 400 }),
    pageSize: fc.integer({ min: 1, max: 300 }),
  })
  await fc.assert(
    fc.asyncProperty(
      fc.array(row, { minLength: 1, maxLength: 600 }),
      sizes,
      async (rows, options) => {
        writeFileSync(path, blendParquet(rows, options))
        const file = await ParquetFile.open(path, path)
        const found: BlendRow[] = []
        for await (const batch of file.batches(['conversations', 'source'])) {
          assert.ok('columns' in batch, 'message' in batch ? batch.message : '')
          assert.equal(batch.firstRow, found.length)
          const [conversations, source] = batch.columns.map(({ values }) => values)
          for (let index = 0; index < batch.count; index++) {
            found.push(
              plain({ conversations: conversations![index], source: source![index] }) as BlendRow,
            )
          }
        }
        await file.close()
        assert.deepEqual(found, rows.map(plain))
      },
    ),
    { numRuns: 40 },
  )
})
