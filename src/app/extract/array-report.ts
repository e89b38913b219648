import type { ValueRange } from '../../core/field.ts'
import { grammarProblem } from '../../core/json-problem.ts'
import { problemText } from '../../core/problem-text.ts'
import type { RowHandler, RowPlace } from './row-handler.ts'

/** Counts the elements of one array, and says what is wrong with which. */
export class ArrayReport {
  #file: string
  #handler: RowHandler
  #rows = 0
  /** Offset of the buffer's beginning in the file. */
  #offset = 0

  constructor(file: string, handler: RowHandler) {
    this.#file = file
    this.#handler = handler
  }

  /** The place of what is wrong with the file. */
  get fileOnly(): { file: string } {
    return { file: this.#file }
  }

  /** Counts on when the caller has dropped so many bytes from its buffer. */
  shift(by: number): void {
    this.#offset += by
  }

  /** The place of the element that begins at `start`, which is the next one. */
  place(start: number): RowPlace {
    return { file: this.#file, row: this.#rows + 1, offset: this.#offset + start }
  }

  /** The element was given. */
  counted(): void {
    this.#rows++
  }

  /** An element that is no JSON. */
  broken(bytes: Buffer, range: ValueRange): void {
    const { start, end } = range
    const problem = grammarProblem(bytes, start, end, true) ?? { code: 'syntax', at: start }
    const code = problem.code === 'blank' ? 'syntax' : problem.code
    const text =
      code === 'truncated'
        ? 'a quote or a bracket of the element is missing'
        : problemText(code, bytes, problem.at, end)
    const message = `${text} (byte ${this.#byte(problem.at)}; the element begins at ${this.#byte(start)})`
    this.#handler.broken(code, message, bytes, range, this.place(start))
    this.#rows++
  }

  /** The file ends in an element. */
  cut(bytes: Buffer, range: ValueRange): void {
    const message = `the file ends in the middle of this element (it begins at byte ${this.#byte(range.start)})`
    this.#handler.broken('truncated', message, bytes, range, this.place(range.start))
    this.#rows++
  }

  /** A comma where an element should be. */
  missing(bytes: Buffer, at: number): void {
    this.broken(bytes, { start: at, end: at })
  }

  notClosed(): void {
    this.#flaw('truncated', 'the array is not closed: the file is cut short')
  }

  trailingComma(): void {
    this.#flaw('trailing-comma', 'a comma follows the last element')
  }

  junk(at: number): void {
    this.#flaw('multiple-values', `something follows the array (byte ${this.#byte(at)})`)
  }

  anotherArray(): void {
    const message = 'another array follows: its elements are counted on'
    this.#flaw('multiple-values', message, this.#rows + 1)
  }

  /** Both elements are whole. */
  lostComma(at: number): void {
    const message = `no comma before this element (byte ${this.#byte(at)})`
    this.#flaw('missing-comma', message, this.#rows + 1)
  }

  /** What stands between two elements and belongs to none. */
  between(at: number): void {
    const message = `something else than a comma before this element (byte ${this.#byte(at)})`
    this.#flaw('syntax', message, this.#rows + 1)
  }

  nuls(): void {
    this.#flaw('nul', 'NUL bytes before this element', this.#rows + 1)
  }

  #flaw(code: string, message: string, row?: number): void {
    this.#handler.fileProblem(code, message, this.#file, row)
  }

  /** Counted from 1, as messages count. */
  #byte(at: number): number {
    return this.#offset + at + 1
  }
}
