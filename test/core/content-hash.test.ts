import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { contentHash } from '../../src/core/content-hash.ts'
import { kernelBytes } from '../../src/core/kernel.ts'

const SIZE = 64 * 1024
const kernel = kernelBytes(SIZE)!

test('a record has the same hash in memory of the kernel and elsewhere, at any offset', () => {
  fc.assert(
    fc.property(fc.uint8Array({ minLength: 0, maxLength: 700 }), fc.nat(40), (record, offset) => {
      const plain = Buffer.alloc(SIZE)
      plain.set(record, offset)
      kernel.set(record)
      const end = offset + record.length
      assert.equal(contentHash(plain, offset, end), contentHash(kernel, 0, record.length))
    }),
    { numRuns: 500 },
  )
})

test('no bit of a record is without effect, and hardly two have the same', () => {
  kernel.fill('{"id":1,"text":"a record"}\\n')
  const hash = (length: number): number => contentHash(kernel, 0, length) & (2 ** 30 - 1)
  for (const length of [1, 4, 7, 46, 255, 256, 287, 288, 289, 320]) {
    const record = kernel.subarray(0, length)
    const seen = new Set([hash(length)])
    for (let bit = 0; bit < length * 8; bit++) {
      record[bit >> 3]! ^= 1 << (bit & 7)
      seen.add(hash(length))
      record[bit >> 3]! ^= 1 << (bit & 7)
    }
    // Two of thousands may meet in 30 bits.
    assert.ok(seen.size >= length * 8, `${seen.size} hashes of ${length} bytes`)
  }
})
