import { contentHash, contentOfLine } from './content-hash.ts'
import { ERROR, failedRange } from './failure-input.ts'
import type { ValueRange } from './field.ts'
import type { Exports } from './kernel.ts'
import { fingerprintInto, type KeyRule, lineKey } from './key.ts'
import type { LineJudge } from './line-judge.ts'
import { TableLook } from './table-look.ts'

/**
 * The records of a block, {@link KEY_COLUMNS} 32-bit numbers each: where the next line starts, the
 * four words of the key's fingerprint, the hash of the content.
 */
export type KeyTable = Int32Array

export const KEY_COLUMNS = 6

/**
 * Looks for the keys of all records of a block. Nearly all have a plain one and are no failure records:
 * those the kernel knows, and leaves those with an `error`.
 */
export class KeyLook extends TableLook {
  #rule: KeyRule

  constructor(judge: LineJudge, rule: KeyRule) {
    super(judge, KEY_COLUMNS, rule.names && [...rule.names, ERROR])
    this.#rule = rule
  }

  protected runKernel(run: Exports, start: number, end: number): number {
    return run.keyRows(start, end, this.#rule.names!.length)
  }

  protected fill(rows: Int32Array, row: number, bytes: Buffer, start: number): void {
    const { judge } = this
    rows[row] = judge.end + 1
    // A key that lies deeper moves the scanner.
    rows[row + 5] = hashOfContent(judge, bytes, { start, end: judge.end })
    writeFingerprint(judge, this.#rule, bytes, start, rows, row + 1)
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

/** The hash of the content of the record which the judge has just read: of a failure record its input. */
export function hashOfContent(
  { scanner }: LineJudge,
  bytes: Buffer,
  { start, end }: ValueRange,
): number {
  const failed = failedRange(scanner, bytes)
  if (failed === undefined) return contentOfLine(bytes, start, end)
  return contentHash(bytes, failed.start, failed.end)
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
