import { crc32 } from 'node:zlib'
import type { ValueRange } from './field.ts'
import { type KeyRule, lineKey } from './key.ts'
import type { LineJudge } from './line-judge.ts'

/**
 * The records of a block, {@link KEY_COLUMNS} 32-bit numbers each: where the next line starts, the
 * four words of the key's fingerprint, the hash of the content.
 */
export type KeyTable = Int32Array

export const KEY_COLUMNS = 6

/** Lines are at least so long on average, or the table is made larger. */
const LIKELY_LINE = 128

/**
 * The keys of all records of a block.
 *
 * @param bytes with a line feed at `end` and the scanner's PADDING behind it
 * @returns undefined where a line is no record or the last one has no line feed: then the lines have
 *   to be gone through one by one
 */
export function lookForKeys(
  judge: LineJudge,
  rule: KeyRule,
  bytes: Buffer,
  end: number,
): KeyTable | undefined {
  let table = new Int32Array((Math.ceil(end / LIKELY_LINE) + 1) * KEY_COLUMNS)
  let row = 0
  judge.begin(bytes, end)
  for (let at = 0; at < end; at = judge.end + 1) {
    if (!judge.line(at) || !judge.terminated) return undefined
    if (row === table.length) table = larger(table)
    const range = { start: at, end: judge.end }
    table[row] = judge.end + 1
    table.set(fingerprintOf(judge, rule, bytes, range), row + 1)
    table[row + 5] = contentHash(bytes, range)
    row += KEY_COLUMNS
  }
  return table.subarray(0, row)
}

/** The fingerprint of the record which the judge has just read: of its key, or else of its line. */
export function fingerprintOf(
  judge: LineJudge,
  rule: KeyRule,
  bytes: Buffer,
  { start, end }: ValueRange,
): Int32Array {
  const key = rule.find(judge.scanner, bytes)
  if (key !== undefined) return rule.fingerprint(bytes, key)
  return rule.fingerprintOfText(lineKey(bytes, start, end))
}

/** Up to this length a loop is faster than the call out of JavaScript and the view it needs. */
const SHORT = 256

/** A hash of a record's content, to tell whether a key stands for another record than before. */
export function contentHash(bytes: Buffer, { start, end }: ValueRange): number {
  if (end - start > SHORT) return crc32(bytes.subarray(start, end))
  let hash = end - start
  for (let at = start; at < end; at++) hash = Math.imul(hash ^ bytes[at]!, 0x01000193)
  hash = Math.imul(hash ^ (hash >>> 16), 0x85ebca6b)
  return hash ^ (hash >>> 13)
}

function larger(table: Int32Array): Int32Array<ArrayBuffer> {
  const copy = new Int32Array(table.length * 2)
  copy.set(table)
  return copy
}
