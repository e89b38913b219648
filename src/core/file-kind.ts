import { isUtf8 } from 'node:buffer'
import { JsonGrammar } from './json-grammar.ts'
import { JsonScanner } from './json-scan.ts'

/** What a whole file can be instead of JSONL. */
export type FileCode = 'utf16' | 'lfs-pointer' | 'pretty-printed' | 'json-array'

/** What is wrong and the way out, one sentence each. */
export const FILE_SENTENCES: Record<FileCode | 'conflict-marker', string> = {
  utf16: 'this is UTF-16, not UTF-8: convert it with iconv -f UTF-16 -t UTF-8',
  'lfs-pointer': 'this is a Git LFS pointer, not the data: fetch it with git lfs pull',
  'pretty-printed': 'one JSON value over several lines: make it one a line with jq -c .',
  'json-array': "one JSON array over several lines: make it one element a line with jq -c '.[]'",
  'conflict-marker': 'git conflict markers: finish the merge (git checkout --merge, git diff)',
}

/** Over this many lines without an error a value counts as one value over several lines. */
const LINES_OF_ONE_VALUE = 3

/** Bytes that are looked at for UTF-16 without a byte order mark: more than one character. */
const UTF16_LEAST = 4
const UTF16_MOST = 64

const LFS = Buffer.from('version https://git-lfs.github.com/spec/')

/**
 * Tells from its first lines what a file is as a whole.
 *
 * @param bytes the file from its beginning to `end`, whole lines unless the file ends there, with
 *   a line feed and the scanner's PADDING behind `end`
 * @returns undefined for JSONL, damaged or not; 'undecided' where more lines are needed
 */
export function fileKind(bytes: Buffer, end: number): FileCode | 'undecided' | undefined {
  const utf16 = isUtf16(bytes.subarray(0, end))
  if (utf16 !== false) return utf16 === true ? 'utf16' : utf16
  if (bytes.subarray(0, Math.min(end, LFS.length)).equals(LFS)) return 'lfs-pointer'
  const start = firstContent(bytes, end)
  if (start === end) return 'undecided'
  if (firstLineIsValue(bytes, start, end)) return undefined
  const kind = bytes[start] === 0x5b ? 'json-array' : 'pretty-printed'
  const grammar = new JsonGrammar()
  let lines = 0
  let at = start
  while (at < end) {
    const lineFeed = bytes.indexOf(0x0a, at)
    const next = lineFeed < 0 || lineFeed >= end ? end : lineFeed + 1
    const broken = grammar.feed(bytes, at, next) >= 0
    if (grammar.complete) return lines > 0 ? kind : undefined
    if (broken) return undefined
    if (++lines === LINES_OF_ONE_VALUE) return kind
    at = next
  }
  return 'undecided'
}

/** Whether so many first lines are enough to tell (`headComplete` of a file's blocks). */
export function kindIsClear(bytes: Buffer, end: number): boolean {
  return fileKind(bytes, end) !== 'undecided'
}

/** Whether a line begins as git writes it around the two sides of a conflict. */
export function isConflictMarker(bytes: Uint8Array, start: number, end: number): boolean {
  const mark = bytes[start]
  if (end - start < 8 || (mark !== 0x3c && mark !== 0x3e) || bytes[start + 7] !== 0x20) return false
  for (let at = start; at < start + 7; at++) if (bytes[at] !== mark) return false
  return true
}

/** The lines that stand between markers: `=======`, and `|||||||` of diff3 style. */
export function isConflictSeparator(bytes: Uint8Array, start: number, end: number): boolean {
  const mark = bytes[start]
  if (end - start < 7 || (mark !== 0x3d && mark !== 0x7c)) return false
  for (let at = start; at < start + 7; at++) if (bytes[at] !== mark) return false
  return true
}

/**
 * A byte order mark, or ASCII with a zero beside every byte as UTF-16 without one has. Only the first
 * line is looked at, as far as it is known: the answer must not depend on how much has been read.
 */
function isUtf16(head: Buffer): boolean | 'undecided' {
  if (head.length < 2) return false
  const mark = head.readUInt16BE(0)
  if (mark === 0xfffe || mark === 0xfeff) return true
  const lineFeed = head.indexOf(0x0a, UTF16_LEAST - 1)
  const length = Math.min(lineFeed < 0 ? head.length : lineFeed + 1, UTF16_MOST)
  const units = length >> 1
  const zeros = [0, 0]
  for (let at = 0; at < units * 2; at++) if (head[at] === 0) zeros[at & 1]!++
  const matches = (zeros[0] === units && zeros[1] === 0) || (zeros[1] === units && zeros[0] === 0)
  return matches && length < UTF16_LEAST ? 'undecided' : matches
}

/** Behind a BOM and blank lines. */
function firstContent(bytes: Uint8Array, end: number): number {
  let at = hasBom(bytes, 0, end) ? 3 : 0
  while (at < end && isWhiteSpace(bytes[at]!)) at++
  return at
}

/** Answers for most files; the slow pass would take seconds over a first line of 600 MB. */
function firstLineIsValue(bytes: Buffer, start: number, end: number): boolean {
  const lineFeed = bytes.indexOf(0x0a, start)
  const lineEnd = lineFeed < 0 ? end : Math.min(end, lineFeed)
  if (!isUtf8(bytes.subarray(start, lineEnd))) return false
  const scanner = new JsonScanner()
  scanner.use(bytes)
  return scanner.scan(start, lineEnd)
}

function isWhiteSpace(byte: number): boolean {
  return byte === 0x20 || byte === 0x0a || byte === 0x0d || byte === 0x09
}

/** Whether a UTF-8 byte order mark stands at `start`. */
export function hasBom(bytes: Uint8Array, start: number, end: number): boolean {
  return (
    end - start >= 3 &&
    bytes[start] === 0xef &&
    bytes[start + 1] === 0xbb &&
    bytes[start + 2] === 0xbf
  )
}
