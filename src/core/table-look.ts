import type { LineJudge } from './line-judge.ts'

/** Rows for which a table has room at first. */
const FIRST_ROWS = 1024

/**
 * Looks over a block whose lines each give a row of 32-bit numbers. The rows of all columns lie one
 * behind the other, so that another thread gives them back by moving one array.
 */
export abstract class TableLook {
  protected readonly judge: LineJudge
  #columns: number
  #rows: Int32Array<ArrayBuffer>
  #length = 0

  constructor(judge: LineJudge, columns: number) {
    this.judge = judge
    this.#columns = columns
    this.#rows = new Int32Array(FIRST_ROWS * columns)
  }

  /**
   * @param bytes with a line feed at `end` and the scanner's PADDING behind it
   * @returns undefined where a line is no record or the last one has no line feed: then the lines
   *   have to be gone through one by one
   */
  look(bytes: Buffer, end: number): Int32Array | undefined {
    const { judge } = this
    judge.begin(bytes, end)
    for (let at = 0; at < end; at = judge.end + 1) {
      if (!judge.line(at) || !judge.terminated) return this.noTable()
      this.#makeRoom(this.#columns)
      this.fill(this.#rows, this.#length, bytes, at)
      this.#length += this.#columns
    }
    return this.takeTable()
  }

  /** Fills the row at `row` for the line at `start`, which the judge has just read. */
  protected abstract fill(rows: Int32Array, row: number, bytes: Buffer, start: number): void

  protected addRows(rows: Int32Array): void {
    this.#makeRoom(rows.length)
    this.#rows.set(rows, this.#length)
    this.#length += rows.length
  }

  /** Forgets the rows so far. */
  protected noTable(): undefined {
    this.#length = 0
  }

  /** The rows so far, which begin anew. */
  protected takeTable(): Int32Array {
    const table = this.#rows.slice(0, this.#length)
    this.#length = 0
    return table
  }

  #makeRoom(more: number): void {
    const wanted = this.#length + more
    if (wanted <= this.#rows.length) return
    const larger = new Int32Array(Math.max(wanted, this.#rows.length * 2))
    larger.set(this.#rows)
    this.#rows = larger
  }
}
