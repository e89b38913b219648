import assert from 'node:assert/strict'
import { test } from 'node:test'
import { EntryReader } from '../../src/app/fanout/entries.ts'
import { KeyRule, lineKey } from '../../src/core/key.ts'
import { lineBlocks } from '../../src/streams/line-blocks.ts'
import { splitLines } from '../../src/streams/split-lines.ts'
import { MemoryReader } from '../support/memory-reader.ts'

const LINES = [
  '{"id":1,"prompt":"a"}',
  `{"id":2,"prompt":"${'x'.repeat(100)}"}`,
  '{"id":3,"prompt":"b"}',
  '\0no text',
  `${'y'.repeat(41)}`,
  'z'.repeat(40),
]

for (const blockSize of [1, 64, 4096]) {
  test(`a line that is too long is named and its key kept, read ${blockSize} at a time`, async () => {
    const blocks = lineBlocks(new MemoryReader(Buffer.from(LINES.join('\n'))), { blockSize })
    const reader = new EntryReader({ key: new KeyRule(), promptField: undefined, send: [] })
    const entries: string[] = []
    for await (const line of splitLines(blocks, 'f', { longest: 40 })) {
      const entry = reader.read(line)
      const what = entry.kind === 'unusable' ? `${entry.key} ${entry.code}` : entry.kind
      entries.push(`${entry.file}:${entry.line} ${what}`)
    }
    const key = (at: number): string => {
      const bytes = Buffer.from(LINES[at]!)
      return `"${lineKey(bytes, 0, bytes.length)}"`
    }
    assert.deepEqual(entries, [
      'f:1 record',
      `f:2 ${key(1)} line-too-long`,
      'f:3 record',
      `f:4 ${key(3)} not-jsonl`,
      `f:5 ${key(4)} line-too-long`,
      `f:6 ${key(5)} not-jsonl`,
    ])
  })
}

test('a long line that is no JSON is kept as base64: its text may be no string as JSON', () => {
  const reader = new EntryReader({ key: new KeyRule(), promptField: undefined, send: [] })
  const text = `{"id":1,"prom${'\0'.repeat(90_000_000)}`
  const entry = reader.read({ file: 'f', line: 1, text, bytes: undefined, longKey: undefined })
  assert.ok(entry.kind === 'unusable' && entry.code === 'not-jsonl' && 'base64' in entry.input)
  assert.equal(entry.input.base64.length, Math.ceil(text.length / 3) * 4)
})
