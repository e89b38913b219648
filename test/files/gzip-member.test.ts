import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { gzipSync } from 'node:zlib'
import { GZIP } from '../../src/files/gzip-member.ts'
import { type Everything, fromPipe } from '../support/members.ts'

const LINES = Array.from({ length: 4000 }, (_, id) => `{"id":${id},"x":${(id * 7919) % 1e6}}\n`)
const TEXT = Buffer.from(LINES.join(''))
const PACKED = gzipSync(TEXT)

const everything = (packed: Buffer, size?: number): Promise<Everything> =>
  fromPipe(packed, GZIP, size)

/** Three members, the middle one damaged: what the others hold is given, byte for byte. */
async function savesTheOthers(damage: (member: Buffer) => Buffer, error: RegExp): Promise<void> {
  const texts = [0, 1, 2].map((member) =>
    LINES.map((line) => line.replace('x', `${member}`)).join(''),
  )
  const [first, second, third] = texts.map((text) => gzipSync(text))
  for (const size of [1000, 65_536]) {
    const packed = Buffer.concat([first!, damage(second!), third!])
    const result = await everything(packed, size)
    assert.match(result.error, error)
    const text = result.bytes.toString()
    assert.ok(text.startsWith(texts[0]!), 'the first member is there')
    assert.ok(text.endsWith(texts[2]!), 'the last member is there')
    const between = text.slice(texts[0]!.length, -texts[2]!.length)
    // A broken byte may change much before it is noticed, but only behind it.
    assert.ok(texts[1]!.startsWith(between.slice(0, 10_000)), 'what stands before the damage')
  }
}

describe('gzip', () => {
  for (const size of [1000, 65_536]) {
    test(`whole, two members, NULs behind: read ${size} at a time`, async () => {
      const two = Buffer.concat([PACKED, gzipSync('more\n')])
      assert.deepEqual(await everything(PACKED, size), { bytes: TEXT, error: '' })
      assert.deepEqual((await everything(two, size)).bytes.subarray(-5).toString(), 'more\n')
      const padded = Buffer.concat([PACKED, Buffer.alloc(100_000)])
      assert.deepEqual(await everything(padded, size), { bytes: TEXT, error: '' })
    })

    test(`all of it where other bytes follow: read ${size} at a time`, async () => {
      for (const tail of ['garbage\n', '\0\0\0garbage\n', 'x'.repeat(100_000)]) {
        const { bytes, error } = await everything(Buffer.concat([PACKED, Buffer.from(tail)]), size)
        assert.equal(bytes.compare(TEXT), 0, `${bytes.length} of ${TEXT.length} bytes`)
        assert.match(error, /bytes that are no gzip follow/)
      }
    })
  }

  test('what stands before the last piece of a cut stream', async () => {
    const { bytes, error } = await everything(PACKED.subarray(0, 15_000))
    assert.match(error, /ends early/)
    assert.equal(bytes.compare(TEXT.subarray(0, bytes.length)), 0)
  })

  test('a broken byte: what stands before it, at any place', async () => {
    for (const at of [3000, 12_000, PACKED.length - 20]) {
      const whole = await everything(PACKED.subarray(0, at))
      const broken = Buffer.from(PACKED)
      broken.fill(0xff, at, at + 8)
      const { bytes, error } = await everything(broken)
      assert.match(error, /is damaged|ends early/)
      // zlib holds back up to a symbol, 258 bytes at most, that the next byte would finish.
      const known = whole.bytes.length - 258
      assert.equal(bytes.compare(TEXT, 0, known, 0, known), 0, `${bytes.length} of ${known}`)
    }
  })

  test('a wrong checksum: all of it, and an error', async () => {
    const broken = Buffer.from(PACKED)
    broken.writeUInt32LE(1, broken.length - 8)
    const { bytes, error } = await everything(broken)
    assert.equal(bytes.compare(TEXT), 0)
    assert.match(error, /is damaged/)
  })

  test('members behind a cut one, as a killed and restarted writer appends them', () =>
    savesTheOthers((member) => member.subarray(0, 10_000), /ends early|is damaged/))

  test('members behind a broken one', () =>
    savesTheOthers((member) => member.fill(0xff, 12_000, 12_100), /is damaged/))

  test('members behind a wrong checksum', () =>
    savesTheOthers((member) => member.fill(0, member.length - 8, member.length), /is damaged/))

  test('members behind a hole', () =>
    savesTheOthers(
      (member) => Buffer.concat([member.subarray(0, 12_000), Buffer.alloc(70_000)]),
      /ends early|is damaged/,
    ))

  test('members behind NULs and other bytes', () =>
    savesTheOthers(
      (member) => Buffer.concat([member, Buffer.alloc(100_000), Buffer.from('garbage')]),
      /no gzip follow/,
    ))

  test('several cut members, as a writer leaves them that is killed again and again', async () => {
    const texts = [0, 1, 2, 3].map((member) =>
      LINES.map((line) => line.replace('x', `${member}`)).join(''),
    )
    const packed = texts.map((text, member) =>
      gzipSync(text).subarray(0, member < 3 ? 4000 : undefined),
    )
    const { bytes, error } = await everything(Buffer.concat(packed))
    assert.match(error, /ends early/)
    const text = bytes.toString()
    assert.ok(text.endsWith(texts[3]!), 'the whole one is there')
    for (const part of texts.slice(0, 3)) {
      assert.ok(text.includes(part.slice(0, 8000)), 'the beginning of a cut one is there')
    }
  })

  test('nothing but headers, many of them, ends', async () => {
    const header = PACKED.subarray(0, 10)
    const { bytes, error } = await everything(Buffer.concat(Array(100_000).fill(header)))
    assert.equal(bytes.length, 0)
    assert.match(error, /is damaged/)
  })
})
