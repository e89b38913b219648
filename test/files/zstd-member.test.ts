import assert from 'node:assert/strict'
import { Readable } from 'node:stream'
import { describe, test } from 'node:test'
import fc from 'fast-check'
import { KeptReader, StreamReader } from '../../src/files/byte-reader.ts'
import { MemberReader } from '../../src/files/member-reader.ts'
import { zstdKind } from '../../src/files/zstd-member.ts'
import { fromFile, fromPipe } from '../support/members.ts'
import {
  blockHeader,
  byProgram,
  type Frame,
  handMade,
  noZstd,
  type Part,
  skippable,
  unpackedByProgram,
} from '../support/zstd.ts'

const ZSTD = await zstdKind()
const SIZES = [1, 7, 4096, 65_536]
const RUNS = Number(process.env.PROPERTY_RUNS ?? 60)

function lines(name: string, count: number): Buffer {
  const line = (_: unknown, id: number): string =>
    `{"id":"${name}${id}","x":${(id * 7919) % 1e6}}\n`
  return Buffer.from(Array.from({ length: count }, line).join(''))
}

/** A frame of three raw blocks, a few lines each. */
function linesByHand(name: string, form = { hasChecksum: true }): Frame {
  const parts = [0, 1, 2].map((block) => lines(`${name}${block}-`, 20))
  return handMade(parts, form)
}

const [FIRST, SECOND, THIRD] = ['a', 'b', 'c'].map((name) => linesByHand(name)) as [
  Frame,
  Frame,
  Frame,
]

/** Reads it at all sizes, from a file and a pipe. */
async function gives(parts: Buffer[], text: Buffer[], error: RegExp): Promise<void> {
  const [packed, expected] = [Buffer.concat(parts), Buffer.concat(text)]
  for (const size of SIZES) {
    for (const from of [fromFile, fromPipe]) {
      const result = await from(packed, ZSTD, size)
      const what = `${from.name}, ${size} bytes at a time`
      assert.match(result.error, error, what)
      assert.equal(result.bytes.compare(expected), 0, `${result.bytes.length} bytes ${what}`)
    }
  }
}

const changed = (bytes: Buffer, at: number, value: number): Buffer => {
  const copy = Buffer.from(bytes)
  copy[at] = value
  return copy
}

describe('whole zstd', () => {
  test('frames, empty ones, skippable ones first, between and last', () => {
    const skipped = skippable(Buffer.from('whatever'))
    const empty = handMade([Buffer.alloc(0)], { hasChecksum: true, hasSize: true })
    return gives(
      [skipped, FIRST.packed, skipped, skipped, empty.packed, SECOND.packed, skipped],
      [FIRST.text, SECOND.text],
      /^$/,
    )
  })

  test('frames without a checksum, with their size, of repeated bytes', () => {
    const plain = linesByHand('d', { hasChecksum: false })
    const repeated = handMade([[0x20, 100_000], Buffer.from('x\n'), [0x0a, 3]], { hasSize: true })
    return gives([plain.packed, repeated.packed], [plain.text, repeated.text], /^$/)
  })

  test('a raw block that holds a frame is no cut', async () => {
    const inner = linesByHand('inner').packed
    const outer = handMade([lines('e', 10), Buffer.concat([lines('f', 3), inner, lines('g', 3)])])
    const more = handMade([Buffer.concat([inner, inner]), lines('h', 10), lines('i', 9)])
    await gives([outer.packed, more.packed], [outer.text, more.text], /^$/)
  })

  test('what the zstd program writes', { skip: noZstd }, async () => {
    const text = lines('p', 20_000)
    for (const options of [['-1'], ['-19'], ['--no-check'], ['--format=zstd', '-B4096', '-T2']]) {
      const { packed } = byProgram(text, options)
      for (const from of [fromFile, fromPipe]) {
        const result = await from(Buffer.concat([packed, packed]), ZSTD)
        assert.deepEqual(result.error, '')
        assert.equal(result.bytes.compare(Buffer.concat([text, text])), 0)
      }
    }
  })

  test('frames by hand are zstd to the zstd program', { skip: noZstd }, () => {
    const packed = Buffer.concat([FIRST.packed, skippable(Buffer.alloc(9)), SECOND.packed])
    assert.deepEqual(unpackedByProgram(packed), Buffer.concat([FIRST.text, SECOND.text]))
  })
})

describe('damaged zstd', () => {
  test('a flipped bit: all of it, and an error', () => {
    const at = 200
    const packed = changed(FIRST.packed, at, FIRST.packed[at]! ^ 1)
    const text = changed(FIRST.text, at - 9, FIRST.text[at - 9]! ^ 1)
    return gives([packed, SECOND.packed], [text, SECOND.text], /stream is damaged/)
  })

  test('a frame cut at any of its ends', async () => {
    const { packed, text, ends } = FIRST
    for (const { packed: end, text: length } of ends) {
      for (const cut of [end, end + 1, end + 2, end + 3]) {
        const parts = [packed.subarray(0, cut), SECOND.packed, THIRD.packed]
        const given = text.subarray(0, length)
        await gives(parts, [given, SECOND.text, THIRD.text], /ends early|is damaged/)
        await gives([packed.subarray(0, cut)], [given], /ends early/)
      }
    }
  })

  test('a frame cut inside a block, and the next one too', () => {
    const [one, two] = [FIRST, SECOND].map(({ packed, ends }) =>
      packed.subarray(0, ends[0]!.packed + 300),
    )
    const given = [FIRST, SECOND].map(({ text, ends }) => text.subarray(0, ends[0]!.text))
    return gives([one!, two!, THIRD.packed], [...given, THIRD.text], /ends early/)
  })

  test('a frame cut inside its header', async () => {
    for (let cut = 1; cut < 9; cut++) {
      const start = SECOND.packed.subarray(0, cut)
      await gives([FIRST.packed, start], [FIRST.text], /ends early|no zstd follow/)
      const error = /ends early|is damaged|no zstd follow/
      await gives([FIRST.packed, start, THIRD.packed], [FIRST.text, THIRD.text], error)
    }
  })

  test('a wrong checksum', () => {
    const packed = changed(FIRST.packed, FIRST.packed.length - 1, FIRST.packed.at(-1)! ^ 1)
    return gives([packed, SECOND.packed], [FIRST.text, SECOND.text], /is damaged/)
  })

  test('a content size that is not its', () => {
    const { packed, text } = handMade([lines('s', 50)], { hasSize: true })
    const wrong = changed(packed, 6, packed[6]! ^ 1)
    return gives([wrong, SECOND.packed], [text, SECOND.text], /is damaged/)
  })

  test('a skippable frame whose size leads too far', async () => {
    for (const size of [9, 1000, 2 ** 30]) {
      const skipped = skippable(Buffer.from('whatever'))
      skipped.writeUInt32LE(size, 4)
      const error = /is damaged|ends early/
      await gives([FIRST.packed, skipped, SECOND.packed], [FIRST.text, SECOND.text], error)
    }
  })

  test('bytes that are no zstd behind the last frame, and frames behind them', async () => {
    for (const tail of ['garbage\n', '\0\0\0', 'x'.repeat(10_000)]) {
      const error = /^bytes that are no zstd follow the end of the zstd stream$/
      await gives([FIRST.packed, Buffer.from(tail)], [FIRST.text], error)
      const parts = [FIRST.packed, Buffer.from(tail), SECOND.packed]
      await gives(parts, [FIRST.text, SECOND.text], error)
    }
  })

  test('a dictionary and a large window: said, and the other frames given', async () => {
    const blocks = SECOND.packed.subarray(6)
    const header = (...rest: number[]): Buffer =>
      Buffer.concat([SECOND.packed.subarray(0, 4), Buffer.from(rest), blocks])
    const dictionary = header(5, 10 << 3, 77)
    const window = header(4, 20 << 3)
    const texts = [FIRST.text, THIRD.text]
    await gives([FIRST.packed, dictionary, THIRD.packed], texts, /needs dictionary 77/)
    await gives([FIRST.packed, window, THIRD.packed], texts, /window of 1024 MB/)
  })

  test('a block that the library would read for ever', async () => {
    const weights = Array<number>(6).fill(0xff)
    for (const description of [
      [0xf0, 0x03],
      [0x10, 0xf8],
      [0xf1, 0x07],
    ]) {
      const body = Buffer.from([0x52, 0x80, 2, 8, ...description, ...weights, 0x80, 1, 1, 1])
      const start = Buffer.from([0x28, 0xb5, 0x2f, 0xfd, 0, 0x50])
      const endless = Buffer.concat([start, blockHeader(2, body.length, true), body])
      await gives([FIRST.packed, endless, SECOND.packed], [FIRST.text, SECOND.text], /is damaged/)
    }
  })

  test('nothing but headers, and headers in blocks, many of them, end', async () => {
    const header = FIRST.packed.subarray(0, 6)
    const headers = Buffer.concat(Array<Buffer>(100_000).fill(header))
    const { bytes, error } = await fromPipe(headers, ZSTD)
    assert.equal(bytes.length, 0)
    assert.match(error, /ends early/)
    const parts = Array<Buffer>(50).fill(headers.subarray(0, 120_000))
    const { packed, text } = handMade(parts, { hasChecksum: true })
    assert.deepEqual(await fromPipe(packed, ZSTD), { bytes: text, error: '' })
  })
})

test('a long pipe with damage near its begin: what follows is not kept', async () => {
  const block = Buffer.alloc(120_000, '{"id":1,"text":"a line of the long pipe"}\n')
  const { packed, text } = handMade(Array<Buffer>(10).fill(block))
  const frames = 250
  let most = 0
  async function* pipe(): AsyncGenerator<Buffer> {
    yield Buffer.concat([FIRST.packed.subarray(0, -10), Buffer.from('garbage')])
    for (let frame = 0; frame < frames; frame++) {
      yield packed
      most = Math.max(most, process.memoryUsage().arrayBuffers)
    }
  }
  const source = new KeptReader(new StreamReader(Readable.from(pipe(), { objectMode: false })))
  const reader = new MemberReader(source, ZSTD, 'packed')
  const before = process.memoryUsage().arrayBuffers
  const into = Buffer.alloc(65_536)
  let length = 0
  const all = async (): Promise<void> => {
    for (let count = 1; count > 0; length += count) count = await reader.read(into, 0, into.length)
  }
  await assert.rejects(all(), /is damaged|ends early/)
  assert.ok(length >= frames * text.length)
  assert.ok(most - before < (frames * packed.length) / 2, `${most - before} bytes of memory`)
})

/** What happens to a frame: cut, a bit flipped, bytes overwritten, bytes put in. */
interface Hurt {
  kind: 'cut' | 'flip' | 'overwrite' | 'insert'
  place: number
  noise: Buffer
}

function hurt(packed: Buffer, { kind, noise }: Hurt, at: number): Buffer {
  const before = packed.subarray(0, at)
  if (kind === 'cut') return before
  if (kind === 'flip') return changed(packed, at, packed[at]! ^ (1 << (noise[0]! & 7)))
  const from = kind === 'insert' ? at : at + noise.length
  return Buffer.concat([before, noise, packed.subarray(from)]).subarray(
    0,
    kind === 'insert' ? undefined : packed.length,
  )
}

const byHand = fc
  .tuple(
    fc.array(
      fc.oneof(
        fc.nat(60).map((count): Part => lines('h', count)),
        fc.tuple(fc.constant(0x20), fc.nat(5000)).map((part): Part => part),
      ),
      { minLength: 1, maxLength: 5 },
    ),
    fc.record({ hasChecksum: fc.boolean(), hasSize: fc.boolean() }),
  )
  .map(([parts, form]) => handMade(parts, form))

const programs = noZstd
  ? []
  : [['-1'], ['-19'], ['--no-check'], ['-3', '-B1024']].flatMap((options) =>
      [1, 40, 2000].map((count) => byProgram(lines('p', count), options)),
    )
const frame = fc.oneof(byHand, ...(noZstd ? [] : [fc.constantFrom(...programs)]))
const noise = fc.uint8Array({ minLength: 1, maxLength: 40 }).map((bytes) => Buffer.from(bytes))
const damage = fc.record<Hurt>({
  kind: fc.constantFrom('cut', 'flip', 'overwrite', 'insert'),
  place: fc.double({ min: 0, max: 0.9999, noNaN: true }),
  noise,
})

test(`one of some frames damaged: the others' text byte for byte, and what precedes the damage`, {
  timeout: 600_000,
}, async () => {
  if (noZstd) console.warn('no zstd program: frames by hand alone')
  const frames = fc.array(frame, { minLength: 1, maxLength: 5 })
  await fc.assert(
    fc.asyncProperty(frames, fc.nat(), damage, fc.boolean(), async (some, which, how, isFile) => {
      const index = which % some.length
      const broken = some[index]!
      const at = Math.floor(how.place * broken.packed.length)
      const packed = some.map((one) => one.packed)
      packed[index] = hurt(broken.packed, how, at)
      // The first bytes tell that it is zstd at all.
      if (index === 0 && at < 4) return
      const textOf = (part: Frame[]): Buffer => Buffer.concat(part.map(({ text }) => text))
      const [before, after] = [textOf(some.slice(0, index)), textOf(some.slice(index + 1))]
      const whole = broken.ends.findLast((end) => end.packed <= at)?.text ?? 0
      for (const size of SIZES) {
        const read = isFile ? fromFile : fromPipe
        const { bytes, error } = await read(Buffer.concat(packed), ZSTD, size)
        const what = `${bytes.length} bytes, ${size} at a time: ${error}`
        const front = Buffer.concat([before, broken.text.subarray(0, whole)])
        assert.equal(bytes.subarray(0, front.length).compare(front), 0, `front of ${what}`)
        const back = bytes.subarray(Math.max(before.length, bytes.length - after.length))
        assert.equal(back.compare(after), 0, `back of ${what}`)
        if (how.kind !== 'cut' || at === 0) continue
        assert.match(error, /ends early|is damaged|no zstd follow/)
        const isExact = broken.ends.length === 0 || bytes.length === front.length + after.length
        assert.ok(isExact, `a cut block gives nothing: ${what}`)
      }
    }),
    { numRuns: RUNS },
  )
})
