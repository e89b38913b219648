import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, test } from 'node:test'
import { fileURLToPath } from 'node:url'
import { type BlendRow, blendParquet } from '../support/parquet.ts'
import { newFolder, run } from '../support/run.ts'

/** Made by pyarrow with the make.py beside them. */
const FILES = fileURLToPath(new URL('../files/parquet', import.meta.url))
const CODECS = { zstd: 'ZSTD', lz4: 'LZ4_RAW' }
const PYARROW = spawnSync('python3', ['-c', 'import pyarrow.parquet']).status === 0

async function check(folder: string, codec: keyof typeof CODECS, version: number): Promise<void> {
  const name = `${codec}-v${version}.parquet`
  const { parquetMetadata } = await import('hyparquet')
  const bytes = readFileSync(join(folder, name))
  const metadata = parquetMetadata(
    bytes.buffer.slice(bytes.byteOffset, bytes.byteOffset + bytes.length) as ArrayBuffer,
  )
  assert.equal(metadata.row_groups[0]!.columns[0]!.meta_data!.codec, CODECS[codec])
  const args = ['-q', '--keep', 'source', name]
  const { code, stdout, stderr } = await run('extract-prompts', args, { cwd: folder })
  const unusable = [10, 20, 30]
  const expected = Array.from({ length: 60 }, (_, index) => index)
    .filter((index) => !unusable.includes(index))
    .map((index) =>
      JSON.stringify({
        id: `${name}:${index + 1}`,
        messages: [{ role: 'user', content: `q${index} "é\n` }],
        source: 'metamath',
      }),
    )
  assert.deepEqual(stdout.toString().split('\n').slice(0, -1), expected)
  assert.equal(code, 1)
  const lines = stderr.split('\n').slice(0, -1)
  assert.deepEqual(
    lines.map((line) => line.match(/:(\d+): .*\[(.*)\]$/)?.slice(1)),
    [
      ['11', 'no-prompt'],
      ['21', 'no-turns'],
      ['31', 'wrong-type'],
    ],
  )
}

describe('Parquet files that pyarrow wrote, several pages in several row groups', () => {
  for (const codec of ['zstd', 'lz4'] as const) {
    for (const version of [1, 2]) {
      test(`${CODECS[codec]}, pages of version ${version}`, () => check(FILES, codec, version))
    }
  }

  const skip = PYARROW ? false : 'PYARROW IS NOT INSTALLED: its newest files are not tried'
  test('by the pyarrow of this machine', { skip }, async () => {
    const folder = newFolder()
    const made = spawnSync('python3', [join(FILES, 'make.py'), folder])
    assert.equal(made.status, 0, made.stderr.toString())
    for (const codec of ['zstd', 'lz4'] as const) {
      for (const version of [1, 2]) await check(folder, codec, version)
    }
  })
})

test('a conversation that goes on over many pages stays one, with nulls inside', async () => {
  const turns = Array.from({ length: 300 }, (_, index) => ({
    from: index % 2 ? 'gpt' : 'human',
    value: index % 7 === 3 ? null : `text ${index}`,
  }))
  const rows: BlendRow[] = [
    { conversations: turns, source: 's' },
    { conversations: turns.slice(0, 3), source: null },
  ]
  const cwd = newFolder()
  writeFileSync(join(cwd, 'd.parquet'), blendParquet(rows, { pageSize: 64 }))
  const args = ['-q', '--turns', 'keep', 'd.parquet']
  const { stdout, stderr } = await run('extract-prompts', args, { cwd })
  const [first, second] = stdout.toString().split('\n')
  assert.equal(stderr, '')
  const messages = (JSON.parse(first!) as { messages: { content: string | null }[] }).messages
  assert.deepEqual(
    messages.map(({ content }) => content),
    turns.slice(0, 299).map(({ value }) => value),
  )
  assert.equal((JSON.parse(second!) as { messages: unknown[] }).messages.length, 3)
})
