import { FingerprintTable } from './fingerprint-table.ts'

/** What the index says of an input record. */
export type Verdict = 'pass' | 'completed' | 'repeated'

const COMPLETED = 1
const SEEN = 2
const FLAG_BITS = 2

/**
 * Which keys are answered, and which the input has already given. Per key: the fingerprint, two
 * flags and 30 bits of the first content seen; with `multiset` also two counts.
 */
export class CompletedIndex {
  /** The last `judge` saw the key with another content than before. */
  conflict = false
  #table: FingerprintTable
  #multiset: boolean

  constructor(multiset: boolean) {
    this.#multiset = multiset
    this.#table = new FingerprintTable(multiset ? 3 : 1)
  }

  get size(): number {
    return this.#table.size
  }

  /** Makes room for so many keys more. */
  expect(more: number): void {
    this.#table.expect(more)
  }

  /** Notes an answer for a key. */
  complete(fingerprint: Int32Array, from = 0): void {
    const table = this.#table
    if (!table.find(fingerprint, from)) table.insert(fingerprint, from)
    table.array[table.at]! |= COMPLETED
    if (this.#multiset) table.array[table.at + 1]!++
  }

  /** Readies the memory for the fingerprints that stand in several rows, the first at `from`. */
  touch(rows: Int32Array, from: number, end: number, rowLength: number): void {
    this.#table.touch(rows, from, end, rowLength)
  }

  /** Whether a key is answered; notes nothing. */
  isCompleted(fingerprint: Int32Array): boolean {
    return this.#table.find(fingerprint) && (this.#table.array[this.#table.at]! & COMPLETED) !== 0
  }

  /**
   * Judges the next input record with this key. A key that is both completed and repeated counts as
   * completed.
   *
   * @param content a hash of the record's content; 30 bits of it are kept
   * @param from where the four words of the fingerprint begin
   */
  judge(fingerprint: Int32Array, content: number, from = 0): Verdict {
    const table = this.#table
    if (!table.find(fingerprint, from)) table.insert(fingerprint, from)
    const { array, at } = table
    const flags = array[at]!
    const seen = (flags & SEEN) !== 0
    this.conflict = seen && flags >>> FLAG_BITS !== (content << FLAG_BITS) >>> FLAG_BITS
    if (!seen) array[at] = (flags & COMPLETED) | SEEN | (content << FLAG_BITS)
    if (this.#multiset) {
      const wanted = ++array[at + 2]!
      return wanted <= array[at + 1]! ? 'completed' : 'pass'
    }
    if ((flags & COMPLETED) !== 0) return 'completed'
    return seen ? 'repeated' : 'pass'
  }
}
