import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { murmur128 } from '../../src/core/hash.ts'

function hashOf(bytes: Uint8Array, start: number, end: number): number[] {
  const out = new Int32Array(4)
  murmur128(bytes, start, end, 0, out)
  return [...out]
}

test('the hash of bytes is the same wherever they lie, and whatever follows them', () => {
  fc.assert(
    fc.property(fc.uint8Array({ maxLength: 70 }), fc.nat(9), fc.nat(9), (bytes, before, after) => {
      const among = Buffer.alloc(before + bytes.length + after, 0xff)
      among.set(bytes, before)
      const end = before + bytes.length
      assert.deepEqual(hashOf(among, before, end), hashOf(bytes, 0, bytes.length))
    }),
    { numRuns: 2000 },
  )
})

test('every byte of a tail counts', () => {
  for (let length = 1; length <= 33; length++) {
    const seen = new Set<string>()
    const bytes = Buffer.alloc(length)
    for (let at = 0; at < length; at++) {
      bytes.fill(0)[at] = 0x80
      seen.add(hashOf(bytes, 0, length).join())
    }
    assert.equal(seen.size, length)
  }
})
