import assert from 'node:assert/strict'
import { existsSync, mkdtempSync, readdirSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import { HashOrder } from '../../src/files/hash-order.ts'

/** Records of a kilobyte that begin with their number, under hashes in no order. */
function record(index: number): { high: number; low: number; bytes: Buffer } {
  const bytes = Buffer.alloc(1024, 0x61)
  bytes.writeUInt32LE(index)
  return { high: Math.imul(index, 0x9e3779b1) >>> 0, low: index, bytes }
}

async function ordered(count: number, limit?: number): Promise<number[]> {
  const order = new HashOrder(limit)
  for (let index = 0; index < count; index++) {
    const { high, low, bytes } = record(index)
    order.add(high, low, bytes)
    if (index % 100 === 0) await order.settle()
  }
  const found: number[] = []
  for await (const bytes of order.inOrder()) {
    assert.equal(bytes.length, 1024)
    found.push(bytes.readUInt32LE())
  }
  await order.close()
  return found
}

const expected = (count: number): number[] =>
  Array.from({ length: count }, (_, index) => index).sort((a, b) => record(a).high - record(b).high)

test('the order is that of the hashes, in memory and through files alike; no file stays', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'order-'))
  const before = process.env.TMPDIR
  process.env.TMPDIR = folder
  try {
    assert.deepEqual(await ordered(1000), expected(1000))
    assert.deepEqual(await ordered(50_000), expected(50_000))
    assert.ok(existsSync(folder) && readdirSync(folder).length === 0)
  } finally {
    if (before === undefined) delete process.env.TMPDIR
    else process.env.TMPDIR = before
  }
})

test('with a limit the first of the order are among what is kept', async () => {
  const found = await ordered(20_000, 300)
  assert.deepEqual(found.slice(0, 300), expected(20_000).slice(0, 300))
})
