import { type Exports, type Kernel, kernelNames } from './kernel.ts'
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
  #names: Buffer | undefined
  #rows: Int32Array<ArrayBuffer>
  #length = 0

  /** @param names what the kernel looks for; without, JavaScript looks at each line */
  constructor(judge: LineJudge, columns: number, names: readonly Uint8Array[] | undefined) {
    this.judge = judge
    this.#columns = columns
    this.#names = names && judge.takesAll ? kernelNames(names) : undefined
    this.#rows = new Int32Array(FIRST_ROWS * columns)
  }

  /**
   * @param bytes with a line feed at `end` and the scanner's PADDING behind it
   * @returns undefined where a line is no record or the last one has no line feed: then the lines
   *   have to be gone through one by one
   */
  look(bytes: Buffer, end: number): Int32Array | undefined {
    this.judge.begin(bytes, end)
    this.#length = 0
    const kernel = this.#names && this.judge.kernel
    const isTable =
      kernel === undefined ? this.#byLine(bytes, end) : this.#byKernel(kernel, bytes, end)
    return isTable ? this.#rows.slice(0, this.#length) : undefined
  }

  /** Fills the row at `row` for the line at `start`, which the judge has just read. */
  protected abstract fill(rows: Int32Array, row: number, bytes: Buffer, start: number): void

  /** Has the kernel write rows for the lines from `start` on; what that gives. */
  protected abstract runKernel(run: Exports, start: number, end: number): number

  #byLine(bytes: Buffer, end: number): boolean {
    const { judge } = this
    for (let at = 0; at < end; at = judge.end + 1) {
      if (!judge.line(at) || !judge.terminated) return false
      this.#makeRoom(this.#columns)
      this.fill(this.#rows, this.#length, bytes, at)
      this.#length += this.#columns
    }
    return true
  }

  #byKernel({ run, names, rows }: Kernel, bytes: Buffer, end: number): boolean {
    names.set(this.#names!)
    for (let at = 0; at < end; ) {
      const count = this.runKernel(run, at, end)
      if (count < 0) return false
      at = run.nextLine()
      const own = rows.subarray(0, count * this.#columns)
      if (run.rowsLeft() > 0 && !this.#fillLeft(own, bytes)) return false
      this.#makeRoom(own.length)
      this.#rows.set(own, this.#length)
      this.#length += own.length
    }
    return true
  }

  /**
   * Fills the rows that the kernel has left.
   *
   * @returns false where one of the lines is no record
   */
  #fillLeft(rows: Int32Array, bytes: Buffer): boolean {
    const { judge } = this
    for (let row = 0; row < rows.length; row += this.#columns) {
      const start = ~rows[row]!
      if (start < 0) continue
      if (!judge.line(start) || !judge.terminated) return false
      this.fill(rows, row, bytes, start)
    }
    return true
  }

  #makeRoom(more: number): void {
    const wanted = this.#length + more
    if (wanted <= this.#rows.length) return
    const larger = new Int32Array(Math.max(wanted, this.#rows.length * 2))
    larger.set(this.#rows)
    this.#rows = larger
  }
}
