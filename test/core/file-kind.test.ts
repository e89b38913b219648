import assert from 'node:assert/strict'
import { test } from 'node:test'
import { fileKind, isConflictMarker, isConflictSeparator } from '../../src/core/file-kind.ts'
import { lineBlocks } from '../../src/streams/line-blocks.ts'
import { MemoryReader } from '../support/memory-reader.ts'
import { padded } from '../support/scan.ts'

/** As the binaries ask: of the first block, whatever the size of the reads. */
async function kindOf(bytes: Buffer, blockSize: number): Promise<string | undefined> {
  const headComplete = (head: Buffer, end: number): boolean => fileKind(head, end) !== 'undecided'
  for await (const block of lineBlocks(new MemoryReader(bytes), { blockSize, headComplete })) {
    const kind = fileKind(block.bytes, block.end)
    return kind === 'undecided' ? undefined : kind
  }
  return undefined
}

const FILES: [string, string | Buffer, string | undefined][] = [
  ['records', '{"a":1}\n{"a":2}\n', undefined],
  ['nothing', '', undefined],
  ['blank lines and a record', '\n \n{"a":1}\n', undefined],
  ['an object over lines', '{\n "a": 1\n}\n', 'pretty-printed'],
  ['an object over two lines', '{"a":\n1}\n', 'pretty-printed'],
  ['an object over lines without newline', '{\n"a":1}', 'pretty-printed'],
  ['behind a BOM and blank lines', '\ufeff\n\n{\n "a": 1\n}\n', 'pretty-printed'],
  ['an array over lines', '[\n{"a":1},\n{"a":2}\n]\n', 'json-array'],
  ['an array over lines that is cut', '[\n{"a":1},\n{"a":2},\n', 'json-array'],
  ['three lines without an error', '{\n"a": [\n1,\n', 'pretty-printed'],
  ['one array on one line', '[1,2]\n[3]\n', undefined],
  ['a torn first record', '{"a":1,\n{"a":2}\n{"a":3}\n', undefined],
  ['a torn first record at a colon', '{"a":\n{"a":2}\n{"a":3}\n', undefined],
  ['only half a record', '{"a":', undefined],
  ['a first line that is broken', '{"a":x}\n{"a":\n1}\n', undefined],
  ['a string over lines is broken', '{"a":"x\ny"}\n', undefined],
  ['an LFS pointer', 'version https://git-lfs.github.com/spec/v1\noid\n', 'lfs-pointer'],
  ['UTF-16 with a BOM', Buffer.from('\ufeff{"a":1}\n', 'utf16le'), 'utf16'],
  ['UTF-16BE with a BOM', Buffer.from('\ufeff{"a":1}\n', 'utf16le').swap16(), 'utf16'],
  ['UTF-16 without', Buffer.from('{"a":1}\n{"a":2}\n', 'utf16le'), 'utf16'],
  ['UTF-16BE without', Buffer.from('{"a":1}\n{"a":2}\n', 'utf16le').swap16(), 'utf16'],
  ['UTF-16 with a short first line', Buffer.from('1\n{"a":2}\n', 'utf16le'), 'utf16'],
  ['NULs before a record', '\0\0\0\0{"a":1}\n', undefined],
  ['only NULs', '\0\0\0\0', undefined],
  ['NULs here and there', '{\0"a":1\0}\n', undefined],
]

for (const [name, content, expected] of FILES) {
  test(`${name}: ${expected ?? 'JSON lines'}`, async () => {
    const bytes = Buffer.from(content)
    for (const size of [1, 2, 3, 7, 4096]) {
      assert.equal(await kindOf(bytes, size), expected, `read size ${size}`)
    }
  })
}

test('a long first line is not gone over byte by byte', () => {
  const bytes = padded(Buffer.from(`{"a":"${'x'.repeat(50_000_000)}"}\n`))
  assert.equal(fileKind(bytes, bytes.length - 9), undefined)
})

test('conflict markers are seven signs and a space, separators seven signs', () => {
  const marker = (text: string): boolean => isConflictMarker(Buffer.from(text), 0, text.length)
  for (const text of ['<<<<<<< HEAD', '>>>>>>> abc', '<<<<<<< ']) assert.ok(marker(text), text)
  for (const text of [
    '<<<<<<<',
    '<<<<<< HEAD',
    '<<<<<<<< HEAD',
    '======= x',
    '<<<>>>> x',
    '<<<<<<<\t',
  ]) {
    assert.ok(!marker(text), text)
  }
  const separator = (text: string): boolean =>
    isConflictSeparator(Buffer.from(text), 0, text.length)
  assert.ok(separator('=======') && separator('||||||| base'))
  assert.ok(!separator('======') && !separator('<<<<<<<'))
})
