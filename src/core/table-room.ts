import { type Kernel, kernelBytes, kernelOf } from './kernel.ts'
import { KEY_COLUMNS, type KeyTable } from './key-look.ts'

/** Words for each fingerprint, its value included, where the kernel judges. */
const STRIDE = 4
const WORD = Int32Array.BYTES_PER_ELEMENT

/** Below this making memory for the kernel costs more than it saves. */
const WORTH_A_KERNEL = 64 * 1024

/**
 * One piece of memory for all segments of a table, and the numbers of what is in each: 256 pieces cost
 * several milliseconds. Where the kernel can read it, it judges records there.
 */
export class TableRoom {
  /** How much is in each segment. */
  readonly sizes: Int32Array
  readonly byteLength: number
  /** Records of the last {@link judge} whose verdict is not 0. */
  others = 0
  #words: Int32Array
  #length: number
  #kernel: Kernel | undefined

  /**
   * @param length words in each segment
   * @param stride words for each fingerprint and its values
   */
  constructor(segments: number, length: number, stride: number) {
    const size = segments * (1 + length) * WORD
    const isJudged = stride === STRIDE && size >= WORTH_A_KERNEL
    const bytes = isJudged ? kernelBytes(size) : undefined
    this.#kernel = bytes && kernelOf(bytes)
    this.#words = new Int32Array(bytes?.buffer ?? new ArrayBuffer(size), 0, size / WORD)
    // Chance touches each page of it soon, first to read it and then to write, which the system answers
    // one by one.
    this.#words.fill(0)
    this.#length = length
    this.sizes = this.#words.subarray(0, segments)
    this.byteLength = size
  }

  segment(index: number): Int32Array {
    const from = this.sizes.length + index * this.#length
    return this.#words.subarray(from, from + this.#length)
  }

  /**
   * Judges records as CompletedIndex does, by rows of a table of keys, as long as all segments are here
   * and none has to grow.
   *
   * @param from where the first row begins
   * @param verdicts receives one for each row that is judged
   * @returns how many are
   */
  judge(rows: KeyTable, from: number, end: number, verdicts: Uint8Array): number {
    this.others = 0
    if (this.#kernel === undefined) return 0
    const { run, rows: own } = this.#kernel
    const most = own.length - (own.length % KEY_COLUMNS)
    own.set(rows.subarray(from, Math.min(end, from + most)))
    const count = run.judgeRows(Math.min(end - from, most) / KEY_COLUMNS, this.#length / STRIDE)
    this.others = run.otherVerdicts()
    if (this.others === 0) verdicts.fill(0, 0, count)
    else for (let row = 0; row < count; row++) verdicts[row] = own[row * KEY_COLUMNS]!
    return count
  }
}
