import type { ValueRange } from '../core/field.ts'
import { ToolError } from '../core/tool-error.ts'

/** A file whose first rows, this many, are all of no known shape or no JSON, is so as a whole. */
const UNDECIDED_ROWS = 100
const OPEN_BRACE = 0x7b
const QUOTE = 0x22

/** Rows of no known shape, which are not named while the whole file may be of none. */
export class FileShape {
  #isKnown = false
  #tells: (() => void)[] = []
  #names: readonly string[] = []
  #refuse: (file: string, names: readonly string[], rows: number) => Error

  /** @param refuse makes the error for a file whose rows have these fields */
  constructor(refuse: (file: string, names: readonly string[], rows: number) => Error) {
    this.#refuse = refuse
  }

  get isKnown(): boolean {
    return this.#isKnown
  }

  /** Begins with another file. */
  begin(): void {
    this.#isKnown = false
    this.#forget()
  }

  /** A row has a known shape: those without are single ones, and are named. */
  known(): void {
    this.#isKnown = true
    const tells = this.#tells
    this.#forget()
    for (const tell of tells) tell()
  }

  /**
   * Keeps a row of no known shape while none has one.
   *
   * @param names the fields of the row, where it is an object
   * @param tell names the row
   * @throws what `refuse` makes
   */
  hold(file: string, names: () => readonly string[] | undefined, tell: () => void): void {
    if (this.#names.length === 0) this.#names = names() ?? []
    this.#tells.push(tell)
    if (this.#tells.length === UNDECIDED_ROWS) this.#throw(file)
  }

  /**
   * Ends the file.
   *
   * @throws what `refuse` makes, where rows came and none of them has a known shape
   */
  end(file: string): void {
    if (this.#tells.length > 0) this.#throw(file)
    this.known()
  }

  #throw(file: string): never {
    const error = this.#refuse(file, this.#names, this.#tells.length)
    this.#forget()
    throw error
  }

  #forget(): void {
    this.#tells = []
    this.#names = []
  }
}

/** Lines that are no JSON, which are not named while the whole file may be something else. */
export class UnreadLines {
  #isJsonl = false
  #tells: (() => void)[] = []
  #first = ''

  /** A line is JSON: those that are none are single ones, and are named. */
  release(): void {
    if (this.#isJsonl) return
    this.#isJsonl = true
    for (const tell of this.#tells.splice(0)) tell()
  }

  /**
   * Names a line that is no JSON, or keeps it while no line looks like a record.
   *
   * @param tell names the line, whose bytes it is given
   * @throws ToolError `not-jsonl`
   */
  line(
    file: string,
    bytes: Buffer,
    range: ValueRange,
    tell: (bytes: Buffer, range: ValueRange) => void,
  ): void {
    if (looksLikeRecord(bytes, range)) this.release()
    if (this.#isJsonl) {
      tell(bytes, range)
      return
    }
    const copy = Buffer.from(bytes.subarray(range.start, range.end))
    if (this.#tells.length === 0) this.#first = copy.toString('latin1', 0, 4096)
    this.#tells.push(() => tell(copy, { start: 0, end: copy.length }))
    if (this.#tells.length === UNDECIDED_ROWS) this.end(file)
  }

  /**
   * Ends the file.
   *
   * @throws ToolError `not-jsonl` where all of its lines are something else
   */
  end(file: string): void {
    if (this.#isJsonl || this.#tells.length === 0) return
    const isTable = /[,;\t]/.test(this.#first)
    const message = isTable
      ? 'no line is JSON: if this is CSV or TSV, make a JSON object of each row (mlr --icsv --ojsonl cat, or --itsv)'
      : 'no line is JSON: one JSON object a line is read here'
    throw new ToolError('not-jsonl', message, { place: { file } })
  }
}

/**
 * Whether a line begins as an object does, maybe behind a byte order mark or NULs: a brace and a
 * quote, for of a hundred lines of a binary file one in two begins with a brace or bracket.
 */
function looksLikeRecord(bytes: Buffer, { start, end }: ValueRange): boolean {
  const skip = (at: number): number => {
    while (at < end && bytes[at]! <= 0x20) at++
    return at
  }
  const isMarked = bytes[start] === 0xef && bytes[start + 1] === 0xbb && bytes[start + 2] === 0xbf
  const at = skip(isMarked ? start + 3 : start)
  return at < end && bytes[at] === OPEN_BRACE && bytes[skip(at + 1)] === QUOTE
}
