import type { ValueRange } from './field.ts'

/**
 * The text of parts of a line. Of an ASCII line it is a slice of the line's string, which costs a
 * tenth of what decoding the bytes again does.
 */
export class RecordText {
  #bytes: Buffer
  #start: number
  #line: string | undefined

  /** @param line the text of the range, where the caller has it */
  constructor(bytes: Buffer, { start, end }: ValueRange, line: string | undefined) {
    this.#bytes = bytes
    this.#start = start
    // A string is as long as its UTF-8 where all of it is ASCII, and nowhere else.
    this.#line = line?.length === end - start ? line : undefined
  }

  of({ start, end }: ValueRange): string {
    if (this.#line === undefined) return this.#bytes.toString('utf8', start, end)
    return this.#line.slice(start - this.#start, end - this.#start)
  }
}
