import { contentHash } from './content-hash.ts'
import type { ValueRange } from './field.ts'
import { fingerprintInto, type KeyRule, lineKey } from './key.ts'
import type { LineJudge } from './line-judge.ts'

/**
 * The records of a block, {@link KEY_COLUMNS} 32-bit numbers each: where the next line starts, the
 * four words of the key's fingerprint, the hash of the content.
 */
export type KeyTable = Int32Array

export const KEY_COLUMNS = 6

const FIRST_ROWS = 8 * 1024

/** Looks for the keys of all records of a block. */
export class KeyLook {
  #judge: LineJudge
  #rule: KeyRule
  #rows = new Int32Array(FIRST_ROWS * KEY_COLUMNS)

  constructor(judge: LineJudge, rule: KeyRule) {
    this.#judge = judge
    this.#rule = rule
  }

  /**
   * @param bytes with a line feed at `end` and the scanner's PADDING behind it
   * @returns undefined where a line is no record or the last one has no line feed: then the lines
   *   have to be gone through one by one
   */
  look(bytes: Buffer, end: number): KeyTable | undefined {
    const judge = this.#judge
    let rows = this.#rows
    let row = 0
    judge.begin(bytes, end)
    for (let at = 0; at < end; at = judge.end + 1) {
      if (!judge.line(at) || !judge.terminated) return undefined
      if (row === rows.length) rows = this.#larger()
      rows[row] = judge.end + 1
      writeFingerprint(judge, this.#rule, bytes, at, rows, row + 1)
      rows[row + 5] = contentHash(bytes, at, judge.end)
      row += KEY_COLUMNS
    }
    return rows.slice(0, row)
  }

  #larger(): Int32Array<ArrayBuffer> {
    const larger = new Int32Array(this.#rows.length * 2)
    larger.set(this.#rows)
    this.#rows = larger
    return larger
  }
}

/**
 * The fingerprint of the record which the judge has just read, its key's or else its line's, is
 * written to `out` from `to` on.
 */
function writeFingerprint(
  judge: LineJudge,
  rule: KeyRule,
  bytes: Buffer,
  start: number,
  out: Int32Array,
  to: number,
): void {
  const key = rule.find(judge.scanner, bytes)
  if (key !== undefined) fingerprintInto(bytes, key, out, to)
  else out.set(rule.fingerprintOfText(lineKey(bytes, start, judge.end)), to)
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
