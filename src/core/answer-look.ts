import { isCompleted, SHORTCOMINGS, type Shortcoming, shortcomingsOf } from './completed.ts'
import { fingerprintInto, type KeyRule } from './key.ts'
import type { LineJudge } from './line-judge.ts'

/**
 * The lines of a block of a file of answers, {@link ANSWER_COLUMNS} 32-bit numbers each: what
 * {@link lookAtAnswer} tells, the four words of the key's fingerprint.
 */
export type AnswerTable = Int32Array

export const ANSWER_COLUMNS = 5

const KEYED = 1
const COMPLETED = 2
const FIRST_SHORTCOMING = 4

const FIRST_ROWS = 1024

/** The record has a key. */
export function isKeyed(told: number): boolean {
  return (told & KEYED) !== 0
}

/** The record is an answer and no trace of a failure. */
export function isAnswer(told: number): boolean {
  return (told & COMPLETED) !== 0
}

/** Whether the answer falls short in the way of this place in SHORTCOMINGS. */
export function fallsShort(told: number, index: number): boolean {
  return (told & (FIRST_SHORTCOMING << index)) !== 0
}

/**
 * Looks at a record of a file of answers, which the scanner has just read.
 *
 * @param out receives the fingerprint of its key, if it has one, from `to` on
 * @returns bits for {@link isKeyed}, {@link isAnswer} and {@link fallsShort}
 */
export function lookAtAnswer(
  rule: KeyRule,
  { scanner }: LineJudge,
  bytes: Buffer,
  { start, end }: { start: number; end: number },
  out: Int32Array,
  to: number,
): number {
  const key = rule.findInCompleted(scanner, bytes)
  if (key === undefined) return 0
  fingerprintInto(bytes, key, out, to)
  scanner.again(start)
  if (!isCompleted(scanner, bytes)) return KEYED
  let told = KEYED | COMPLETED
  for (const word of shortcomingsOf(scanner, bytes, start, end)) told |= bitOf(word)
  return told
}

function bitOf(word: Shortcoming): number {
  return FIRST_SHORTCOMING << SHORTCOMINGS.indexOf(word)
}

/** Looks at all lines of a block of a file of answers. */
export class AnswerLook {
  #judge: LineJudge
  #rule: KeyRule
  #rows = new Int32Array(FIRST_ROWS * ANSWER_COLUMNS)

  constructor(judge: LineJudge, rule: KeyRule) {
    this.#judge = judge
    this.#rule = rule
  }

  /**
   * @param bytes with a line feed at `end` and the scanner's PADDING behind it
   * @returns undefined where a line is no record or the last one has no line feed: then the lines
   *   have to be gone through one by one
   */
  look(bytes: Buffer, end: number): AnswerTable | undefined {
    const judge = this.#judge
    const range = { start: 0, end: 0 }
    let rows = this.#rows
    let row = 0
    judge.begin(bytes, end)
    for (let at = 0; at < end; at = judge.end + 1) {
      if (!judge.line(at) || !judge.terminated) return undefined
      if (row === rows.length) rows = this.#larger()
      range.start = at
      range.end = judge.end
      rows[row] = lookAtAnswer(this.#rule, judge, bytes, range, rows, row + 1)
      row += ANSWER_COLUMNS
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
