import { isUtf8 } from 'node:buffer'
import { ArraySplitter } from '../../core/array-splitter.ts'
import type { ByteReader } from '../../core/byte-reader.ts'
import type { ValueRange } from '../../core/field.ts'
import { grammarProblem } from '../../core/json-problem.ts'
import { JsonScanner, PADDING } from '../../core/json-scan.ts'
import { problemText } from '../../core/problem-text.ts'
import { EXIT, ToolError } from '../../core/tool-error.ts'
import { BLOCK_SIZE } from '../../streams/line-blocks.ts'
import type { RowHandler, RowPlace } from './row-handler.ts'

/** An element is scanned with 32-bit offsets. */
const LONGEST_ELEMENT = 2 ** 31 - 1 - PADDING
const LINE_FEED = 0x0a

/** Gives the elements of one JSON array as rows, in memory that holds the longest of them. */
export async function arrayRows(
  reader: ByteReader,
  file: string,
  handler: RowHandler,
): Promise<void> {
  const rows = new ArrayRows(file, handler)
  let damage: ToolError | undefined
  while (!handler.done) {
    const count = await rows.fill(reader).catch((error: unknown) => {
      if (!(error instanceof ToolError) || error.exitCode !== EXIT.data) throw error
      damage = error
      return 0
    })
    if (count === 0) break
    rows.split()
    await handler.settle()
    rows.forget()
  }
  if (damage !== undefined) throw damage
  if (!handler.done) rows.end()
  await handler.settle()
}

class ArrayRows {
  #file: string
  #handler: RowHandler
  #splitter = new ArraySplitter()
  #scanner = new JsonScanner()
  #bytes = Buffer.allocUnsafeSlow(2 * BLOCK_SIZE + PADDING)
  #filled = 0
  #at = 0
  /** Offset of the buffer's beginning in the file. */
  #offset = 0

  constructor(file: string, handler: RowHandler) {
    this.#file = file
    this.#handler = handler
  }

  async fill(reader: ByteReader): Promise<number> {
    const room = (): number => this.#bytes.length - PADDING - this.#filled
    if (room() < BLOCK_SIZE) this.#grow()
    const count = await reader.read(this.#bytes, this.#filled, Math.min(room(), BLOCK_SIZE))
    this.#filled += count
    return count
  }

  /** Gives the elements that end in what was read. */
  split(): void {
    while (!this.#handler.done) {
      const end = this.#splitter.next(this.#bytes, this.#at, this.#filled)
      this.#at = end < 0 ? this.#filled : end
      if (end < 0) return
      this.#element(this.#splitter.start, end)
    }
  }

  /** Drops what was given from the buffer. */
  forget(): void {
    const from = this.#splitter.state === 'inside' ? this.#splitter.start : this.#at
    this.#bytes.copyWithin(0, from, this.#filled)
    this.#splitter.shift(from)
    this.#filled -= from
    this.#at -= from
    this.#offset += from
  }

  /** Says what is missing at the end of the file. */
  end(): void {
    const { state, start, count, owesElement, trailing } = this.#splitter
    const problem = (code: string, message: string): void =>
      this.#handler.fileProblem(code, message, this.#file)
    if (state === 'behind') {
      if (trailing) problem('multiple-values', 'something follows the array')
      else if (owesElement) problem('trailing-comma', 'a comma follows the last element')
      return
    }
    if (state === 'inside') {
      const place = this.#place(start, count + 1)
      if (!this.#row({ start, end: this.#filled }, place)) {
        const message = 'the file ends in the middle of this element'
        const range = { start, end: this.#filled }
        this.#handler.broken('truncated', message, this.#bytes, range, place)
        return
      }
    }
    problem('truncated', 'the array is not closed: the file is cut short')
  }

  #element(start: number, delimiter: number): void {
    let end = delimiter
    while (end > start && this.#bytes[end - 1]! <= 0x20) end--
    const place = this.#place(start, this.#splitter.count)
    if (!this.#row({ start, end }, place)) this.#broken({ start, end }, place)
  }

  /** Gives the element if it is JSON. */
  #row(range: ValueRange, place: RowPlace): boolean {
    const bytes = this.#bytes
    const { start, end } = range
    this.#scanner.use(bytes)
    // The scanner needs a line feed behind what it reads.
    const byte = bytes[end]!
    bytes[end] = LINE_FEED
    const isRow = isUtf8(bytes.subarray(start, end)) && this.#scanner.scan(start, end)
    if (isRow) this.#handler.row(this.#scanner, bytes, range, place)
    bytes[end] = byte
    return isRow
  }

  #broken(range: ValueRange, place: RowPlace): void {
    const bytes = this.#bytes
    const { start, end } = range
    const problem = grammarProblem(bytes, start, end, true) ?? { code: 'syntax', at: start }
    const code = problem.code === 'blank' ? 'syntax' : problem.code
    const message =
      code === 'truncated'
        ? 'a quote or a bracket of the element is missing'
        : problemText(code, bytes, problem.at, end)
    this.#handler.broken(code, message, bytes, range, place)
  }

  #place(start: number, row: number): RowPlace {
    return { file: this.#file, row, offset: this.#offset + start }
  }

  #grow(): void {
    const size = Math.min((this.#bytes.length - PADDING) * 2, LONGEST_ELEMENT)
    if (size <= this.#filled) {
      throw new ToolError('element-too-long', 'an element of the array is longer than 2 GiB', {
        place: { file: this.#file },
      })
    }
    const larger = Buffer.allocUnsafeSlow(size + PADDING)
    this.#bytes.copy(larger, 0, 0, this.#filled)
    this.#bytes = larger
  }
}
