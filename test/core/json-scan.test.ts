import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import fc from 'fast-check'
import { JsonScanner, MEMBER_STRIDE } from '../../src/core/json-scan.ts'
import { json } from '../support/arbitraries.ts'
import { fastAccepts, fromLatin1, nodeAccepts, padded, slowAccepts } from '../support/scan.ts'
import { ACCEPTED, OPEN, REJECTED } from './json-forms.ts'

const RUNS = Number(process.env.PROPERTY_RUNS ?? 3000)

describe('the forms of JSONTestSuite', () => {
  const forms = [
    ...Object.entries(ACCEPTED).map(([name, input]) => ({ name, input, accepted: true })),
    ...Object.entries(REJECTED).map(([name, input]) => ({ name, input, accepted: false })),
    ...Object.entries(OPEN).map(([name, { input, accepted }]) => ({ name, input, accepted })),
  ]
  for (const { name, input, accepted } of forms) {
    test(`${accepted ? 'accepts' : 'rejects'} ${name}`, () => {
      const bytes = fromLatin1(input)
      for (const filler of [0x00, 0x20, 0x22, 0x31, 0x5c, 0x7d]) {
        assert.equal(fastAccepts(bytes, filler), accepted)
      }
      assert.equal(slowAccepts(bytes), accepted)
      assert.equal(nodeAccepts(bytes), accepted)
    })
  }
})

/** Lines that are almost JSON: a value with a few bytes changed, dropped or put in. */
const mutated = fc
  .tuple(
    json,
    fc.array(
      fc.record({
        at: fc.nat(),
        drop: fc.nat(2),
        put: fc.array(
          fc.constantFrom(
            ...fromLatin1('{}[]":,\\ \t\r-+.eE0159anulrtfs/\x00\x1f\x7f\xc3\xa9\xf0\xed'),
          ),
          { maxLength: 2 },
        ),
      }),
      { maxLength: 3 },
    ),
  )
  .map(([text, changes]) => {
    let bytes = Buffer.from(text)
    for (const { at, drop, put } of changes) {
      const start = at % (bytes.length + 1)
      bytes = Buffer.concat([
        bytes.subarray(0, start),
        Buffer.from(put),
        bytes.subarray(start + drop),
      ])
    }
    return bytes.filter((byte) => byte !== 0x0a)
  })

const soup = fc
  .array(fc.constantFrom(...fromLatin1('{}[]":,\\ \t\r-+.eE01nulltruefals/\x00\xc3\xa9')), {
    maxLength: 12,
  })
  .map((bytes) => Buffer.from(bytes))

test('scanner, slow pass and JSON.parse with strict UTF-8 agree on every line', () => {
  fc.assert(
    fc.property(fc.oneof(mutated, soup, fc.uint8Array({ maxLength: 8 })), (line) => {
      const bytes = Buffer.from(line).filter((byte) => byte !== 0x0a)
      const expected = nodeAccepts(bytes)
      assert.equal(fastAccepts(bytes), expected)
      assert.equal(slowAccepts(bytes), expected)
    }),
    { numRuns: RUNS },
  )
})

/** Strings long enough for the kernel, of plain runs of any length and what ends them. */
const longStrings = fc
  .tuple(
    fc.nat(40),
    fc.array(
      fc.oneof(
        { weight: 3, arbitrary: fc.nat(40).map((length) => Buffer.alloc(length, 'ab é')) },
        fc
          .constantFrom(
            '\\n',
            '\\"',
            '\\\\',
            '\\/',
            '\\b',
            '\\f',
            '\\r',
            '\\t',
            '\\u00e9',
            '\\ud83d',
          )
          .map((text) => Buffer.from(text)),
        fc.nat(255).map((byte) => Buffer.from([0x5c, byte])),
        fc.nat(255).map((byte) => Buffer.from([byte])),
      ),
      { maxLength: 8 },
    ),
    fc.boolean(),
  )
  .map(([length, parts, isClosed]) => {
    const ends = Buffer.from(isClosed ? '"' : '')
    const content = Buffer.concat([Buffer.alloc(length, 'x'), ...parts])
    return Buffer.concat([Buffer.from('"'), content, ends]).filter((byte) => byte !== 0x0a)
  })

test('long strings: the kernel, the loop, the slow pass and JSON.parse agree', () => {
  fc.assert(
    fc.property(longStrings, fc.constantFrom(0x20, 0x22, 0x5c, 0x61), (bytes, filler) => {
      const expected = nodeAccepts(bytes)
      assert.equal(fastAccepts(bytes, filler), expected)
      assert.equal(slowAccepts(bytes), expected)
    }),
    { numRuns: RUNS },
  )
})

test('every byte behind a backslash, with the kernel and without', () => {
  for (let byte = 0; byte < 256; byte++) {
    for (const before of [0, 15, 31, 32, 33, 47, 48, 100]) {
      if (byte === 0x0a) continue
      const bytes = Buffer.from(`"${'x'.repeat(before)}\\?${'y'.repeat(20)}"`)
      bytes[before + 2] = byte
      assert.equal(fastAccepts(bytes), nodeAccepts(bytes), `byte ${byte} behind ${before}`)
    }
  }
})

test('members are where JSON.parse finds them', () => {
  const key = fc.constantFrom('a', 'b', 'id', 'é', '"', '__proto__', '')
  fc.assert(
    fc.property(fc.array(fc.tuple(key, json), { maxLength: 90 }), fc.nat(3), (members, shift) => {
      const gap = ' '.repeat(shift)
      const inside = members.map(([k, v]) => `${gap}${JSON.stringify(k)}${gap}:${gap}${v}`)
      const bytes = padded(Buffer.from(`${gap}{${inside.join(',')}}`))
      for (const comparesKeys of [true, false]) {
        const scanner = new JsonScanner(comparesKeys)
        scanner.use(bytes)
        assert.equal(scanner.value(0), bytes.length - 9)
        assert.equal(scanner.memberCount, members.length)
        members.forEach(([k, v], index) => {
          const [keyStart, keyEnd, start, end] = scanner.members.subarray(
            index * MEMBER_STRIDE,
            (index + 1) * MEMBER_STRIDE,
          )
          assert.equal(bytes.toString('utf8', keyStart, keyEnd), JSON.stringify(k))
          assert.equal(bytes.toString('utf8', start, end), v)
        })
      }
    }),
    { numRuns: RUNS / 10 },
  )
})

test('a value ends where it ends, whatever follows', () => {
  const scanner = new JsonScanner()
  for (const [text, end] of [
    ['{"a":1}{"b":2}', 7],
    ['[1] x', 3],
    ['"a""b"', 3],
    ['12 34', 2],
    ['truetrue', 4],
    ['  null', 6],
  ] as const) {
    scanner.use(padded(Buffer.from(text)))
    assert.equal(scanner.value(0), end)
  }
})

test('depth, and members of the last value only', () => {
  const scanner = new JsonScanner()
  scanner.use(padded(Buffer.from('{"a":[[{}]],"b":1}[1]')))
  assert.equal(scanner.value(0), 18)
  assert.deepEqual([scanner.depth, scanner.memberCount], [4, 2])
  assert.equal(scanner.value(18), 21)
  assert.deepEqual([scanner.depth, scanner.memberCount], [1, 0])
})

test('a hundred thousand levels, a hundred thousand keys', () => {
  const deep = '['.repeat(100_000) + ']'.repeat(100_000)
  assert.ok(fastAccepts(Buffer.from(deep)))
  const wide = Array.from({ length: 100_000 }, (_, index) => `"k${index}":{}`).join(',')
  assert.ok(fastAccepts(Buffer.from(`{${wide}}`)))
})
