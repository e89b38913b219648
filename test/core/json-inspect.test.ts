import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { inspectLine } from '../../src/core/json-inspect.ts'
import { LineJudge } from '../../src/core/line-judge.ts'
import { padded } from '../support/scan.ts'

function inspect(text: string, maxDepth = 10_000) {
  const bytes = Buffer.from(text)
  return inspectLine(bytes, 0, bytes.length, maxDepth)
}

test('the first repeated key, also spelt otherwise, also deep inside', () => {
  const lines: [string, number][] = [
    ['{"a":1,"b":2}', -1],
    ['{"a":1,"a":2}', 7],
    ['{"a":1,"\\u0061":2}', 7],
    ['{"\\u00e9":1,"é":2}', 12],
    ['{"a":{"a":1},"b":{"a":1}}', -1],
    ['[{"a":1},{"a":1}]', -1],
    ['{"x":[1,{"b":1,"c":2,"b":3}],"y":0}', 21],
    ['{"a":"a","b":"a"}', -1],
    ['{"":1,"":2}', 6],
    ['{"\\ud83d":1,"\\ud83e":2}', -1],
    ['{"\\ud83d\\ude00":1,"😀":2}', 18],
  ]
  for (const [text, at] of lines) assert.equal(inspect(text).duplicateKey, at, text)
})

test('the first half of a surrogate pair', () => {
  const lines: [string, number][] = [
    ['"\\ud83d\\ude00"', -1],
    ['"\\ud83d"', 1],
    ['"x\\ude00"', 2],
    ['"\\ud83dx\\ude00"', 1],
    ['"\\ud83d\\ud83d\\ude00"', 1],
    ['"\\ude00\\ud83d"', 1],
    ['{"\\uD83D":1}', 2],
    ['"\\\\ud83d"', -1],
    ['"\\ud7ff\\ue000"', -1],
  ]
  for (const [text, at] of lines) assert.equal(inspect(text).loneSurrogate, at, text)
})

test('the first bracket that is too deep', () => {
  assert.equal(inspect('[[[]],[[[]]]]', 3).tooDeep, 8)
  assert.equal(inspect('[[[]]]', 3).tooDeep, -1)
  assert.equal(inspect('{"a":{"b":{}}}', 2).tooDeep, 10)
})

test('the judge asks for the second look wherever it finds something', () => {
  const key = fc.constantFrom(
    '"a"',
    '"b"',
    '"\\u0061"',
    '"a\\u0000"',
    '"é"',
    '"\\u00e9"',
    '"abcd"',
    '"abce"',
  )
  const value = fc.constantFrom(
    '1',
    '"\\ud83d"',
    '"\\ud83d\\ude00"',
    '{"a":1}',
    '{"a":1,"a":2}',
    '[]',
  )
  fc.assert(
    fc.property(fc.array(fc.tuple(key, value), { maxLength: 100 }), (members) => {
      const text = `{${members.map(([k, v]) => `${k}:${v}`).join(',')}}`
      const found = inspect(text)
      const judge = new LineJudge({ maxDepth: 10_000, allow: new Set() })
      const bytes = padded(Buffer.from(text))
      judge.begin(bytes, bytes.length - 8)
      const expected = found.duplicateKey < 0 && found.loneSurrogate < 0
      assert.equal(judge.line(0), expected)
    }),
    { numRuns: 1000 },
  )
})

test('a hundred thousand keys and levels take linear time', () => {
  const keys = Array.from({ length: 100_000 }, (_, index) => `"key-${index}":${index}`)
  assert.equal(inspect(`{${keys.join(',')}}`).duplicateKey, -1)
  const deep = `${'{"a":'.repeat(100_000)}1${'}'.repeat(100_000)}`
  assert.equal(inspect(deep, 200_000).duplicateKey, -1)
})
