import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { LineJudge } from '../../src/core/line-judge.ts'
import { REPAIR_ALLOWS } from '../../src/core/repair.ts'
import { records } from '../support/arbitraries.ts'
import { type Repaired, repairBytes } from '../support/repair-bytes.ts'

const RUNS = Number(process.env.PROPERTY_RUNS ?? 80)
const READ_SIZES = [1, 2, 3, 7, 64, 4096]

function file(lines: readonly string[]): Buffer {
  return Buffer.from(lines.map((line) => `${line}\n`).join(''))
}

function linesOf(bytes: Buffer): string[] {
  return bytes.toString('latin1').split('\n').slice(0, -1)
}

/** Whether validate-jsonl would let every line pass, with what repair allows. */
function isValid(bytes: Buffer): boolean {
  const judge = new LineJudge({ maxDepth: Infinity, allow: new Set(REPAIR_ALLOWS) })
  const padded = Buffer.concat([bytes, Buffer.from('\n       ')])
  judge.begin(padded, bytes.length)
  for (let at = 0; at < bytes.length; at = judge.end + 1) {
    if (!judge.line(at) || !judge.terminated) return false
  }
  return true
}

/** What must hold whatever the damage. */
async function checkLaws(damaged: Buffer): Promise<Repaired> {
  const result = await repairBytes(damaged)
  for (const readSize of READ_SIZES) {
    const same = await repairBytes(damaged, readSize)
    assert.deepEqual(
      [same.refused, same.exitCode, same.counts],
      [result.refused, result.exitCode, result.counts],
      `read size ${readSize}`,
    )
    assert.ok(same.refused !== undefined || same.out.equals(result.out), `read size ${readSize}`)
  }
  if (result.refused !== undefined) return result

  assert.ok(isValid(result.out), 'the output is valid')
  const again = await repairBytes(result.out)
  assert.ok(again.out.equals(result.out), 'a second repair changes nothing')
  assert.deepEqual([again.exitCode, again.pieces.length, again.refused], [0, 0, undefined])
  checkBytes(damaged, result)

  const { counts } = result
  const { kept, unframed, split, framing, torn, removed } = counts
  assert.equal(counts.lines, kept + unframed + split + framing + torn + removed)
  assert.equal(counts.records, linesOf(result.out).length)
  return result
}

/** Every byte is kept, removed or framing; what is removed stands where it is said to have stood. */
function checkBytes(damaged: Buffer, { kept, pieces, counts, out }: Repaired): void {
  const fate = new Uint8Array(damaged.length)
  const claim = (start: number, end: number): void => {
    for (let at = start; at < end; at++) {
      assert.equal(fate[at], 0, `byte ${at} twice`)
      fate[at] = 1
    }
  }
  for (const [start, end] of kept) claim(start, end)
  for (const { offset, bytes, line } of pieces) {
    claim(offset, offset + bytes.length)
    assert.ok(damaged.subarray(offset, offset + bytes.length).equals(bytes), 'a piece is exact')
    const before = damaged.subarray(0, offset).filter((byte) => byte === 0x0a).length
    assert.equal(line, before + 1)
  }
  const framing = [...fate.keys()].filter((at) => fate[at] === 0)
  assert.equal(framing.length, counts.framingBytes)
  for (const at of framing) {
    assert.ok([0, 0x20, 0x09, 0x0d, 0x0a, 0xef, 0xbb, 0xbf].includes(damaged[at]!), `byte ${at}`)
  }
  const keptBytes = kept.reduce((sum, [start, end]) => sum + end - start, 0)
  assert.equal(out.length, keptBytes + counts.addedNewlines)
}

test('a valid file stays as it is', async () => {
  await fc.assert(
    fc.asyncProperty(records, async (lines) => {
      const result = await checkLaws(file(lines))
      assert.ok(result.out.equals(file(lines)))
      assert.equal(result.counts.kept, lines.length)
    }),
    { numRuns: RUNS },
  )
})

test('cut at any byte, every record wholly before the cut is there, and nothing else', async () => {
  await fc.assert(
    fc.asyncProperty(records, fc.nat(), async (lines, random) => {
      const whole = file(lines)
      const cut = random % (whole.length + 1)
      const damaged = whole.subarray(0, cut)
      const result = await checkLaws(damaged)
      const expected: string[] = []
      let at = 0
      for (const line of lines) {
        at += Buffer.byteLength(line)
        if (at > cut) break
        expected.push(line)
        at++
      }
      assert.equal(result.out.toString(), file(expected).toString())
      assert.equal(result.exitCode, 0)
    }),
    { numRuns: RUNS * 4 },
  )
})

test('a record glued onto a torn one comes back, where a record before it is like it', async () => {
  await fc.assert(
    fc.asyncProperty(records, fc.nat(), fc.nat(), async (lines, which, random) => {
      fc.pre(lines.length >= 3)
      const index = 1 + (which % (lines.length - 2))
      const torn = Buffer.from(lines[index]!)
      const cut = 1 + (random % (torn.length - 1))
      const damaged = Buffer.concat([
        file(lines.slice(0, index)),
        torn.subarray(0, cut),
        file(lines.slice(index + 1)),
      ])
      const result = await checkLaws(damaged)
      assert.equal(result.refused, undefined)
      const out = result.out.toString().split('\n').slice(0, -1)
      const without = [...lines.slice(0, index), ...lines.slice(index + 1)]
      const withoutGlued = [...lines.slice(0, index), ...lines.slice(index + 2)]
      // Without a whole key, or where the object might be a value, there is no evidence.
      const expected = out.length === without.length ? without : withoutGlued
      assert.deepEqual(out, expected)
      const wholeKey = /^\{"[a-z]+"/.test(torn.subarray(0, cut).toString())
      const atValue = /[:[,]$/.test(torn.subarray(0, cut).toString())
      if (wholeKey && !atValue) assert.equal(out.length, without.length)
    }),
    { numRuns: RUNS * 4 },
  )
})

const damage = fc.oneof(
  fc.record({
    kind: fc.constantFrom('cut', 'drop', 'nul', 'flip', 'copy'),
    at: fc.nat(),
    length: fc.nat(60),
  }),
  fc.record({
    kind: fc.constantFrom('blank', 'bom', 'nuls', 'join'),
    at: fc.nat(),
    length: fc.nat(20),
  }),
)

function apply(
  bytes: Buffer,
  { kind, at, length }: { kind: string; at: number; length: number },
): Buffer {
  const start = at % (bytes.length + 1)
  const end = Math.min(bytes.length, start + length)
  const insert = (middle: Buffer): Buffer =>
    Buffer.concat([bytes.subarray(0, start), middle, bytes.subarray(start)])
  switch (kind) {
    case 'cut':
      return bytes.subarray(0, start)
    case 'drop':
      return Buffer.concat([bytes.subarray(0, start), bytes.subarray(end)])
    case 'nul':
      return Buffer.from(bytes).fill(0, start, end)
    case 'flip': {
      const flipped = Buffer.from(bytes)
      if (start < bytes.length) flipped[start]! ^= 1 << (length % 8)
      return flipped
    }
    case 'copy':
      return Buffer.concat([bytes.subarray(0, end), bytes.subarray(start)])
    case 'join': {
      const lineFeed = bytes.indexOf(0x0a, start)
      if (lineFeed < 0) return bytes
      return Buffer.concat([bytes.subarray(0, lineFeed), bytes.subarray(lineFeed + 1)])
    }
    case 'nuls':
      return insert(Buffer.alloc(length))
    case 'bom':
      return insert(Buffer.from('\ufeff'))
    default:
      return insert(Buffer.from('\n \r\n'.slice(0, length)))
  }
}

test('the laws hold for any damage', async () => {
  await fc.assert(
    fc.asyncProperty(
      records,
      fc.array(damage, { minLength: 1, maxLength: 4 }),
      async (lines, all) => {
        await checkLaws(all.reduce(apply, file(lines)))
      },
    ),
    { numRuns: RUNS * 6 },
  )
})

test('two writers: lines of one writer that are whole come back', async () => {
  await fc.assert(
    fc.asyncProperty(
      records,
      records,
      fc.array(fc.nat(80), { maxLength: 30 }),
      async (a, b, cuts) => {
        const sources = [file(a), file(b)]
        const pieces: Buffer[] = []
        cuts.forEach((length, turn) => {
          const source = sources[turn % 2]!
          pieces.push(source.subarray(0, length))
          sources[turn % 2] = source.subarray(length)
        })
        const damaged = Buffer.concat([...pieces, ...sources])
        const result = await checkLaws(damaged)
        if (result.refused !== undefined) return
        const whole = linesOf(damaged).filter((line) => isValid(Buffer.from(`${line}\n`, 'latin1')))
        const out = linesOf(result.out)
        let at = 0
        for (const line of whole) {
          at = out.indexOf(line, at) + 1
          assert.ok(at > 0, 'a whole line is missing')
        }
      },
    ),
    { numRuns: RUNS * 2 },
  )
})

test('random bytes', async () => {
  const alphabet = fc.constantFrom(...Buffer.from('{}[]":,\\ \n\0\r1-ea"u\xc3\xa9\xef\xbb\xbf'))
  const begin = fc.constantFrom('', '{"a":1}\n', '{"a":{"a":1}}\n{"a":null}\n')
  const bytes = fc
    .tuple(begin, fc.array(alphabet, { maxLength: 60 }))
    .map(([start, values]) => Buffer.concat([Buffer.from(start), Buffer.from(values)]))
  await fc.assert(
    fc.asyncProperty(bytes, async (value) => void (await checkLaws(value))),
    { numRuns: RUNS * 6 },
  )
})
