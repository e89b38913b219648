import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import type { ByteReader } from '../../src/core/byte-reader.ts'
import { PADDING } from '../../src/core/json-scan.ts'
import { ToolError } from '../../src/core/tool-error.ts'
import { type BlockOptions, lineBlocks } from '../../src/streams/line-blocks.ts'
import { MemoryReader } from '../support/memory-reader.ts'

interface Taken {
  blocks: { bytes: Buffer; offset: number; terminated: boolean; cut: boolean }[]
  error: unknown
}

async function take(reader: ByteReader, options: BlockOptions): Promise<Taken> {
  const blocks: Taken['blocks'] = []
  try {
    for await (const { bytes, end, offset, terminated, cut } of lineBlocks(reader, options)) {
      assert.ok(bytes.length >= end + PADDING, 'there is padding')
      assert.equal(bytes[end], 0x0a, 'a line feed stands behind the block')
      blocks.push({ bytes: Buffer.from(bytes.subarray(0, end)), offset, terminated, cut })
    }
    return { blocks, error: undefined }
  } catch (error) {
    return { blocks, error }
  }
}

test('the same bytes in whole lines at any read size', async () => {
  const piece = fc.constantFrom('a', '\n', '\r\n', 'é', '\u2028', 'long line'.repeat(5))
  await fc.assert(
    fc.asyncProperty(fc.array(piece), fc.integer({ min: 1, max: 40 }), async (parts, blockSize) => {
      const bytes = Buffer.from(parts.join(''))
      const { blocks } = await take(new MemoryReader(bytes), { blockSize })
      assert.ok(Buffer.concat(blocks.map((block) => block.bytes)).equals(bytes))
      let offset = 0
      blocks.forEach((block, index) => {
        assert.equal(block.offset, offset)
        assert.ok(block.bytes.length > 0)
        offset += block.bytes.length
        const ends = block.bytes.at(-1) === 0x0a
        assert.equal(block.terminated, ends)
        assert.ok(ends || index === blocks.length - 1, 'only the last block may end inside a line')
      })
    }),
    { numRuns: 500 },
  )
})

test('reads that give less than they are asked for', async () => {
  const bytes = Buffer.from('one\ntwo\nthree')
  const source = new MemoryReader(bytes)
  const slow: ByteReader = { read: (into, offset) => source.read(into, offset, 1) }
  const { blocks } = await take(slow, { blockSize: 64 })
  assert.deepEqual(
    blocks.map((block) => block.bytes.toString()),
    ['one\n', 'two\n', 'three'],
  )
})

test('the head waits for as many lines as it is told', async () => {
  const seen: string[] = []
  const headComplete = (bytes: Buffer, end: number): boolean => {
    seen.push(bytes.toString('utf8', 0, end))
    return seen.length === 3
  }
  const { blocks } = await take(new MemoryReader(Buffer.from('a\nb\nc\nd\n')), {
    blockSize: 1,
    headComplete,
  })
  assert.equal(blocks[0]!.bytes.toString(), seen[2])
  assert.equal(Buffer.concat(blocks.map((block) => block.bytes)).toString(), 'a\nb\nc\nd\n')
})

test('damage of the data comes behind the bytes before it, other errors at once', async () => {
  const failing = (error: Error): ByteReader => {
    const source = new MemoryReader(Buffer.from('one\ntwo\nthr'))
    return {
      async read(into, offset, length) {
        const count = await source.read(into, offset, length)
        if (count === 0) throw error
        return count
      },
    }
  }
  const damage = new ToolError('gzip-truncated', 'cut', { exitCode: 1 })
  const cut = await take(failing(damage), { blockSize: 4 })
  assert.equal(cut.error, damage)
  assert.deepEqual(
    cut.blocks.map((block) => [block.bytes.toString(), block.cut]),
    [
      ['one\n', false],
      ['two\n', false],
      ['thr', true],
    ],
  )
  const trouble = new ToolError('io', 'cannot read')
  const broken = await take(failing(trouble), { blockSize: 4 })
  assert.equal(broken.error, trouble)
  assert.ok(!broken.blocks.some((block) => block.bytes.includes('thr')))
})

test('stopping early leaves no failing read behind', async () => {
  let reads = 0
  const reader: ByteReader = {
    read(into, offset) {
      if (reads++ > 0) return Promise.reject(new Error('nobody asked'))
      into.write('a\nb\n', offset)
      return Promise.resolve(4)
    },
  }
  for await (const block of lineBlocks(reader)) {
    assert.equal(block.end, 4)
    break
  }
  await new Promise((resolve) => setImmediate(resolve))
})

test('a line much longer than a block is copied few times', async () => {
  const line = Buffer.alloc(20_000_000, 'x')
  const { blocks } = await take(new MemoryReader(line), { blockSize: 4096 })
  assert.equal(blocks.length, 1)
  assert.equal(blocks[0]!.bytes.length, line.length)
})
