import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { ALLOWABLE, LineJudge } from '../../src/core/line-judge.ts'
import { json } from '../support/arbitraries.ts'
import { nodeAccepts, padded } from '../support/scan.ts'

interface Verdict {
  start: number
  end: number
  terminated: boolean
  codes: string[]
}

function judgeAll(block: Buffer, allow: readonly string[] = [], maxDepth = 10_000): Verdict[] {
  const judge = new LineJudge({ maxDepth, allow: new Set(allow) })
  const bytes = padded(block)
  judge.begin(bytes, block.length)
  const verdicts: Verdict[] = []
  for (let at = 0; at < block.length; ) {
    const clean = judge.line(at)
    const codes = judge.problems.map(({ code }) => code as string)
    assert.equal(clean, codes.length === 0)
    verdicts.push({ start: at, end: judge.end, terminated: judge.terminated, codes })
    at = judge.terminated ? judge.end + 1 : judge.end
  }
  return verdicts
}

test('lines end at 0x0A and nowhere else', () => {
  const block = Buffer.from('{"a":"\u2028\u0085"}\r\n\n"x"\n{"b":1}')
  assert.deepEqual(
    judgeAll(block).map(({ end, terminated, codes }) => [end, terminated, ...codes]),
    [
      [14, true],
      [15, true, 'blank'],
      [19, true],
      [27, false],
    ],
  )
})

test('a BOM is reported and the rest of the line still checked', () => {
  const bom = '\ufeff'
  const codes = (text: string, allow: string[] = []) =>
    judgeAll(Buffer.from(text), allow).map((verdict) => verdict.codes)
  assert.deepEqual(codes(`${bom}{"a":1}\n`), [['bom']])
  assert.deepEqual(codes(`${bom}{"a":1\n`), [['bom', 'truncated']])
  assert.deepEqual(codes(`${bom}{"a":1,"a":2}\n`), [['bom', 'duplicate-key']])
  assert.deepEqual(codes(`${bom}\n`), [['bom', 'blank']])
  assert.deepEqual(codes(bom), [['bom']])
  assert.deepEqual(codes(`${bom}{"a":1}\n`, ['bom']), [[]])
})

test('one line in bad UTF-8 does not make others bad', () => {
  const block = Buffer.from('{"a":"caf\xe9"}\n{"a":"\xc3\xa9"}\n"\xc3\n', 'latin1')
  assert.deepEqual(
    judgeAll(block).map(({ codes }) => codes),
    [['utf8'], [], ['utf8']],
  )
})

test('a character cut in two by the line feed is no character', () => {
  const block = Buffer.from('"\xe4\xb8\n\xad"\n', 'latin1')
  assert.deepEqual(
    judgeAll(block).map(({ codes }) => codes),
    [['utf8'], ['utf8']],
  )
})

test('what is allowed passes', () => {
  const lines = ['', '\ufeff1', '{"a":1,"a":2}', '"\\ud83d"', '[[[]]]']
  lines.forEach((line, index) => {
    const [before] = judgeAll(Buffer.from(`${line}\n`), [], 2)
    assert.deepEqual(before!.codes, [ALLOWABLE[index]])
    const [after] = judgeAll(Buffer.from(`${line}\n`), [ALLOWABLE[index]!], 2)
    assert.deepEqual(after!.codes, [])
  })
})

test('problems of one line come in the order of its bytes, each once', () => {
  const [verdict] = judgeAll(Buffer.from('{"x":"\\ud83d","x":[[]],"x":"\\ud83d"}\n'), [], 2)
  assert.deepEqual(verdict!.codes, ['lone-surrogate', 'duplicate-key', 'too-deep'])
})

test('a value is only whole before its own line feed', () => {
  assert.deepEqual(
    judgeAll(Buffer.from('{"a":\n1}\n')).map(({ codes }) => codes),
    [['truncated'], ['syntax']],
  )
})

test('agrees with JSON.parse line by line, wherever the lines stand', () => {
  const line = fc.oneof(json, fc.constantFrom('', '{', '"', '{"a":1}}', 'nul', '1e', '12'))
  fc.assert(
    fc.property(fc.array(line, { maxLength: 6 }), (lines) => {
      const block = Buffer.from(lines.map((text) => `${text}\n`).join(''))
      const verdicts = judgeAll(block, ['duplicate-key', 'lone-surrogate'])
      assert.equal(verdicts.length, lines.length)
      verdicts.forEach(({ codes }, index) => {
        assert.equal(codes.length === 0, nodeAccepts(Buffer.from(lines[index]!)), lines[index])
      })
    }),
    { numRuns: 500 },
  )
})
