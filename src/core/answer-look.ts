import { SHORTCOMINGS, type Shortcoming, shortcomingsOf } from './completed.ts'
import type { Exports } from './kernel.ts'
import { fingerprintInto, type KeyRule } from './key.ts'
import type { LineJudge } from './line-judge.ts'
import { TableLook } from './table-look.ts'

/**
 * The lines of a block of a file of answers, {@link ANSWER_COLUMNS} 32-bit numbers each: what
 * {@link lookAtAnswer} tells, the four words of the key's fingerprint.
 */
export type AnswerTable = Int32Array

export const ANSWER_COLUMNS = 5

const KEYED = 1
const COMPLETED = 2
const FIRST_SHORTCOMING = 4

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
  const shortcomings = shortcomingsOf(scanner, bytes, start, end)
  if (shortcomings === undefined) return KEYED
  let told = KEYED | COMPLETED
  for (const word of shortcomings) told |= bitOf(word)
  return told
}

function bitOf(word: Shortcoming): number {
  return FIRST_SHORTCOMING << SHORTCOMINGS.indexOf(word)
}

/**
 * What the kernel looks for behind the names of keys, in the order of src/kernel/answers.ts: members
 * whose records it leaves, those of a record and of a message, and words that are values.
 */
const NAMES_OF_ANSWERS = [
  'error response choices turns',
  'status finish_reason conversations text content value',
  'success length content_filter',
].flatMap((names) => names.split(' ').map((name) => Buffer.from(name)))

/**
 * Looks at all lines of a block of a file of answers. Nearly all are answers of fanout-complete with
 * which nothing is wrong: those the kernel knows, but for `--key`.
 */
export class AnswerLook extends TableLook {
  #rule: KeyRule
  #range = { start: 0, end: 0 }

  constructor(judge: LineJudge, rule: KeyRule) {
    const names = rule.field === undefined ? rule.names : undefined
    super(judge, ANSWER_COLUMNS, names && [...names, ...NAMES_OF_ANSWERS])
    this.#rule = rule
  }

  protected runKernel(run: Exports, start: number, end: number): number {
    return run.answerRows(start, end, this.#rule.names!.length)
  }

  protected fill(rows: Int32Array, row: number, bytes: Buffer, start: number): void {
    const range = this.#range
    range.start = start
    range.end = this.judge.end
    rows.fill(0, row + 1, row + ANSWER_COLUMNS)
    rows[row] = lookAtAnswer(this.#rule, this.judge, bytes, range, rows, row + 1)
  }
}
