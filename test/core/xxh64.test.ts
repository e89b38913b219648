import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { describe, test } from 'node:test'
import fc from 'fast-check'
import { plainStripes, wasmStripes, Xxh64 } from '../../src/core/xxh64.ts'

/** Hashes with seed 0 that the documents of other implementations give. */
const KNOWN: [string, bigint][] = [
  ['', 0xef46db3751d8e999n],
  ['a', 0xd24ec4f1a98c6e5bn],
  ['as', 0x1c330fb2d66be179n],
  ['asd', 0x631c37ce72a97393n],
  ['asdf', 0x415872f599cea71en],
  ['abc', 0x44bc2cf5ad770999n],
  ['xxhash', 0x32dd38952c4bc720n],
  ['Nobody inspects the spammish repetition', 0xfbcea83c8a378bf1n],
  ['Call me Ishmael. Some years ago--never mind how long precisely-', 0x02a2e85470d6fd96n],
]

const KINDS = { WebAssembly: wasmStripes()!, BigInt: plainStripes }

describe('XXH64', () => {
  for (const [kind, stripes] of Object.entries(KINDS)) {
    test(`known hashes, by ${kind}`, () => {
      for (const [text, expected] of KNOWN) {
        const hash = new Xxh64(stripes)
        hash.update(Buffer.from(text))
        assert.equal(hash.digest().toString(16), expected.toString(16), text)
      }
    })
  }

  test('the same by both kinds, in any pieces', () => {
    const piece = fc.uint8Array({ maxLength: 200 })
    fc.assert(
      fc.property(fc.array(piece, { maxLength: 8 }), (pieces) => {
        const [whole, inPieces] = [new Xxh64(KINDS.BigInt), new Xxh64(KINDS.WebAssembly)]
        whole.update(Buffer.concat(pieces))
        for (const bytes of pieces) inPieces.update(bytes)
        assert.equal(whole.digest(), inPieces.digest())
      }),
      { numRuns: 500 },
    )
  })

  test('two hashes at a time do not meet', () => {
    const [one, two, alone] = [new Xxh64(), new Xxh64(), new Xxh64()]
    for (let round = 0; round < 5; round++) {
      const bytes = Buffer.alloc(777, round)
      one.update(bytes)
      two.update(Buffer.alloc(100, 7))
      alone.update(bytes)
    }
    assert.equal(one.digest(), alone.digest())
  })

  const zstd = spawnSync('zstd', ['--version']).status === 0
  test('what zstd writes behind its frames', { skip: zstd ? false : 'no zstd program' }, () => {
    for (const length of [1, 31, 32, 33, 100, 131_072, 131_073, 1_000_003]) {
      const text = Buffer.alloc(length, `${length} {"id":1,"text":"a record"}\n`)
      const { stdout } = spawnSync('zstd', ['-q', '-c'], { input: text })
      const hash = new Xxh64()
      hash.update(text)
      const low = Number(BigInt.asUintN(32, hash.digest()))
      assert.equal(low, stdout.readUInt32LE(stdout.length - 4), `${length} bytes`)
    }
  })
})
