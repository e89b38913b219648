import assert from 'node:assert/strict'
import { test } from 'node:test'
import {
  COMPLETED,
  CONFLICT,
  CompletedIndex,
  PASS,
  REPEATED,
} from '../../src/core/completed-index.ts'
import { FingerprintTable } from '../../src/core/fingerprint-table.ts'
import { KeyRule } from '../../src/core/key.ts'

const rule = new KeyRule()
const of = (key: string): Int32Array => rule.fingerprintOfText(key)

test('holds what was put into it and nothing else, through many growths', () => {
  const table = new FingerprintTable(2)
  for (let i = 0; i < 200_000; i++) {
    assert.equal(table.place(of(`k${i}`)), false)
    table.array[table.at] = i
    table.array[table.at + 1] = ~i
  }
  assert.equal(table.size, 200_000)
  for (let i = 0; i < 200_000; i++) {
    assert.ok(table.find(of(`k${i}`)))
    assert.equal(table.array[table.at], i)
    assert.equal(table.array[table.at + 1], ~i)
    assert.equal(table.find(of(`o${i}`)), false)
  }
})

test('room for what is expected, whether it comes or not', () => {
  const table = new FingerprintTable(1)
  for (let i = 0; i < 30_000; i++) {
    if (i === 100) table.expect(5000)
    if (i === 20_000) table.expect(Number.MAX_SAFE_INTEGER)
    assert.equal(table.place(of(`k${i}`)), false)
    table.array[table.at] = i
  }
  assert.equal(table.size, 30_000)
  for (let i = 0; i < 30_000; i++) {
    assert.ok(table.find(of(`k${i}`)))
    assert.equal(table.array[table.at], i)
  }
  // Not more than 90 MB for what does not come.
  assert.ok(table.array.byteLength * 256 < 100e6, `${table.array.byteLength}`)
})

test('words of zero and fingerprints that meet in one place', () => {
  const table = new FingerprintTable(1)
  const words = [0, 1, -1]
  const all = words.flatMap((a) =>
    words.flatMap((b) => [2, 3].map((c) => new Int32Array([0, a, b, c]))),
  )
  for (const [index, fingerprint] of all.entries()) {
    assert.equal(table.place(fingerprint), false)
    table.array[table.at] = index
  }
  for (const [index, fingerprint] of all.entries()) {
    assert.ok(table.find(fingerprint))
    assert.equal(table.array[table.at], index)
  }
})

/** Judges one record after the other, each a key and a content. */
function judged(index: CompletedIndex, ...records: [string, number][]): number[] {
  const rows = records.flatMap(([key, content]) => [0, ...of(key), content])
  const verdicts = new Uint8Array(records.length)
  index.judge(Int32Array.from(rows), 0, rows.length, verdicts)
  return [...verdicts]
}

test('a key that is completed and repeated counts as completed; other content is a conflict', () => {
  const index = new CompletedIndex(false)
  index.complete(of('a'))
  assert.deepEqual(judged(index, ['a', 1], ['a', 1]), [COMPLETED, COMPLETED])
  assert.deepEqual(judged(index, ['b', 7], ['b', 7]), [PASS, REPEATED])
  assert.deepEqual(judged(index, ['b', 8]), [REPEATED + CONFLICT])
  assert.deepEqual(judged(index, ['a', 2], ['c', 8]), [COMPLETED + CONFLICT, PASS])
})

test('multiset: as many as are completed are held back', () => {
  const index = new CompletedIndex(true)
  index.complete(of('a'))
  index.complete(of('a'))
  const verdicts = judged(index, ['a', 1], ['a', 1], ['a', 1], ['a', 2])
  assert.deepEqual(verdicts, [COMPLETED, COMPLETED, PASS, PASS + CONFLICT])
})
