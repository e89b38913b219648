import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { CompletedIndex } from '../../src/core/completed-index.ts'
import { FingerprintTable } from '../../src/core/fingerprint-table.ts'
import { KeyRule } from '../../src/core/key.ts'
import { KEY_COLUMNS } from '../../src/core/key-look.ts'

/** As many as a room for the kernel is made for, at least. */
const EXPECTED = 4000

const rule = new KeyRule()

/** A row of a table of keys: with few words, so that they meet in places and in all but one word. */
const fewWords = fc.constantFrom(0, 1, -1)
const rowOfFew = fc.tuple(
  fc.constantFrom(0, -1),
  fewWords,
  fewWords,
  fewWords,
  fc.constantFrom(1, 2, 1 << 30),
)

test('the kernel judges as JavaScript does, and notes the same', () => {
  const records = fc.array(rowOfFew, { minLength: 20, maxLength: 80 })
  fc.assert(
    fc.property(records, records, records, (answers, first, second) => {
      const plain = new CompletedIndex(false)
      const kernel = new CompletedIndex(false)
      kernel.expect(EXPECTED)
      for (const [a, b, c, d] of answers) {
        const fingerprint = Int32Array.of(a, b, c, d)
        plain.complete(fingerprint)
        kernel.complete(fingerprint)
      }
      for (const part of [first, second]) {
        const rows = Int32Array.from(part.flatMap((row) => [7, ...row]))
        const verdicts = [plain, kernel].map((index) => {
          const own = new Uint8Array(part.length + 1)
          const others = index.judge(rows, 0, rows.length, own)
          assert.equal(others, own.filter((verdict) => verdict !== 0).length)
          return [...own]
        })
        assert.deepEqual(verdicts[1], verdicts[0])
        assert.equal(kernel.size, plain.size)
      }
    }),
  )
})

function rowsOf(from: number, to: number): Int32Array {
  const rows = new Int32Array((to - from) * KEY_COLUMNS)
  for (let key = from; key < to; key++) {
    const row = (key - from) * KEY_COLUMNS
    rows.set(rule.fingerprintOfText(`k${key}`), row + 1)
    rows[row + 5] = key
  }
  return rows
}

test('a room holds what was expected, and what more comes is judged all the same', () => {
  const table = new FingerprintTable(1)
  table.expect(EXPECTED)
  const rows = rowsOf(0, EXPECTED)
  const verdicts = new Uint8Array(EXPECTED)
  assert.equal(table.room!.judge(rows, 0, KEY_COLUMNS * 1000, verdicts), 1000)
  assert.equal(table.room!.judge(rows, KEY_COLUMNS * 1000, KEY_COLUMNS * 2000, verdicts), 1000)
  // What it is given at a time has an end.
  assert.ok(table.room!.judge(rows, 0, rows.length, verdicts) >= 2000)
  for (let key = 0; key < 2000; key++) assert.ok(table.find(rows, key * KEY_COLUMNS + 1))
  const index = new CompletedIndex(false)
  index.expect(EXPECTED)
  for (const verdict of [0, 2]) {
    for (let from = 0; from < 5 * EXPECTED; from += EXPECTED) {
      const others = index.judge(rowsOf(from, from + EXPECTED), 0, rows.length, verdicts)
      assert.equal(others, verdict === 0 ? 0 : EXPECTED)
      assert.ok(verdicts.every((own) => own === verdict))
    }
  }
  assert.equal(index.size, 5 * EXPECTED)
})

test('the kernel ends before a segment is as full as one may be in JavaScript, and not sooner', () => {
  const table = new FingerprintTable(1)
  table.expect(EXPECTED)
  const { room } = table
  const verdicts = new Uint8Array(1)
  let key = 0
  while (room!.judge(rowsOf(key, key + 1), 0, KEY_COLUMNS, verdicts) === 1) key++
  // Segments are not filled alike: the fullest one decides.
  assert.ok(key > 0.75 * EXPECTED, `it ended after ${key}`)
  assert.equal(table.size, key)
  assert.equal(table.room, room)
  assert.equal(table.place(rowsOf(key, key + 1), 1), false)
  assert.equal(table.room, undefined, 'a segment grew out of the room')
  assert.equal(table.size, key + 1)
})
