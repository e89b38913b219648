import { contentHash, contentOfLine } from './content-hash.ts'
import { ERROR, failedRange } from './failure-input.ts'
import type { ValueRange } from './field.ts'
import { NAME_LENGTH } from './kernel.ts'
import { fingerprintInto, type KeyRule, lineKey } from './key.ts'
import type { LineJudge } from './line-judge.ts'
import { TableLook } from './table-look.ts'

/**
 * The records of a block, {@link KEY_COLUMNS} 32-bit numbers each: where the next line starts, the
 * four words of the key's fingerprint, the hash of the content.
 */
export type KeyTable = Int32Array

export const KEY_COLUMNS = 6

/** Looks for the keys of all records of a block. */
export class KeyLook extends TableLook {
  #rule: KeyRule
  /** For the kernel; undefined where it cannot look for the keys. */
  #names: Buffer | undefined

  constructor(judge: LineJudge, rule: KeyRule) {
    super(judge, KEY_COLUMNS)
    this.#rule = rule
    this.#names = judge.takesAll ? namesFor(rule) : undefined
  }

  /** Nearly all records have a plain key and are no failure records: the kernel knows those. */
  override look(bytes: Buffer, end: number): KeyTable | undefined {
    const names = this.#names
    if (names === undefined) return super.look(bytes, end)
    this.judge.begin(bytes, end)
    const { kernel } = this.judge
    if (kernel === undefined) return super.look(bytes, end)
    kernel.names.set(names)
    for (let at = 0; at < end; ) {
      const count = kernel.run.keyRows(at, end, names.length / NAME_LENGTH - 1)
      const rows = kernel.rows.subarray(0, Math.max(count, 0) * KEY_COLUMNS)
      const left = kernel.run.rowsLeft()
      if (count < 0 || (left > 0 && !this.#fillLeft(rows, bytes, at))) return this.noTable()
      this.addRows(rows)
      at = rows[rows.length - KEY_COLUMNS]!
    }
    return this.takeTable()
  }

  /**
   * Fills the rows that the kernel has left.
   *
   * @returns false where one of the lines is no record
   */
  #fillLeft(rows: Int32Array, bytes: Buffer, start: number): boolean {
    const { judge } = this
    for (let row = 0, at = start; row < rows.length; at = rows[row]!, row += KEY_COLUMNS) {
      if (rows[row]! >= 0) continue
      if (!judge.line(at) || !judge.terminated) return false
      this.fill(rows, row, bytes, at)
    }
    return true
  }

  protected fill(rows: Int32Array, row: number, bytes: Buffer, start: number): void {
    const { judge } = this
    rows[row] = judge.end + 1
    // A key that lies deeper moves the scanner.
    rows[row + 5] = hashOfContent(judge, bytes, { start, end: judge.end })
    writeFingerprint(judge, this.#rule, bytes, start, rows, row + 1)
  }
}

/** The names of the keys, and of the member of failure records, as the kernel takes them. */
function namesFor({ names }: KeyRule): Buffer | undefined {
  if (names === undefined || names.some(({ length }) => length > NAME_LENGTH)) return undefined
  const all = [...names, ERROR]
  const bytes = Buffer.alloc(all.length * NAME_LENGTH)
  for (const [index, name] of all.entries()) bytes.set(name, index * NAME_LENGTH)
  return bytes
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
