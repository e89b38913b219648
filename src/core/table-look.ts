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
    const columns = this.#columns
    let rows = this.#rows
    let row = 0
    judge.begin(bytes, end)
    for (let at = 0; at < end; at = judge.end + 1) {
      if (!judge.line(at) || !judge.terminated) return undefined
      if (row === rows.length) rows = this.#larger()
      this.fill(rows, row, bytes, at)
      row += columns
    }
    return rows.slice(0, row)
  }

  /** Fills the row at `row` for the line at `start`, which the judge has just read. */
  protected abstract fill(rows: Int32Array, row: number, bytes: Buffer, start: number): void

  #larger(): Int32Array<ArrayBuffer> {
    const larger = new Int32Array(this.#rows.length * 2)
    larger.set(this.#rows)
    this.#rows = larger
    return larger
  }
}
