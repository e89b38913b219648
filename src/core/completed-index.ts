import { FingerprintTable } from './fingerprint-table.ts'
import { KEY_COLUMNS, type KeyTable } from './key-look.ts'

/** What the index says of an input record. */
export const PASS = 0
export const COMPLETED = 1
export const REPEATED = 2
/** Comes on top of one of these: the key stood for another content before. */
export const CONFLICT = 4

/** What is noted of a key; behind these two flags, content seen. */
const ANSWERED = 1
const SEEN = 2
const FLAG_BITS = 2

/** Records for which the memory is readied before they are judged. */
const TOUCHED = 64

/**
 * Which keys are answered, and which the input has already given. Per key: the fingerprint, two
 * flags and 30 bits of the first content seen; with `multiset` also two counts.
 */
export class CompletedIndex {
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
    table.place(fingerprint, from)
    table.array[table.at]! |= ANSWERED
    if (this.#multiset) table.array[table.at + 1]!++
  }

  /** Whether a key is answered; notes nothing. */
  isCompleted(fingerprint: Int32Array): boolean {
    return this.#table.find(fingerprint) && (this.#table.array[this.#table.at]! & ANSWERED) !== 0
  }

  /**
   * Judges the next input records, each by a row of a table of keys. A key that is both completed and
   * repeated counts as completed.
   *
   * @param from where the first row begins
   * @param verdicts receives {@link PASS}, {@link COMPLETED} or {@link REPEATED} for each row
   * @returns how many do not pass, or conflict
   */
  judge(rows: KeyTable, from: number, end: number, verdicts: Uint8Array): number {
    // Where nothing grows the kernel does, from the first record on as fast as what V8 has compiled.
    const { room } = this.#table
    const judged = this.#multiset ? 0 : (room?.judge(rows, from, end, verdicts) ?? 0)
    let others = judged > 0 ? room!.others : 0
    for (let at = judged; from + at * KEY_COLUMNS < end; at += TOUCHED) {
      const first = from + at * KEY_COLUMNS
      const last = Math.min(end, first + TOUCHED * KEY_COLUMNS)
      others += this.#judge(rows, first, last, verdicts, at)
    }
    return others
  }

  /** @param firstPlace where in `verdicts` the first one belongs */
  #judge(
    rows: KeyTable,
    from: number,
    end: number,
    verdicts: Uint8Array,
    firstPlace: number,
  ): number {
    const table = this.#table
    let others = 0
    table.touch(rows, from + 1, end, KEY_COLUMNS)
    // All in one loop: V8 compiles it sooner than what is called once a record.
    for (let row = from, place = firstPlace; row < end; row += KEY_COLUMNS, place++) {
      table.place(rows, row + 1)
      const { array, at } = table
      const flags = array[at]!
      const content = rows[row + 5]! << FLAG_BITS
      const seen = (flags & SEEN) !== 0
      if (!seen) array[at] = (flags & ANSWERED) | SEEN | content
      let verdict = seen ? REPEATED : PASS
      if ((flags & ANSWERED) !== 0) verdict = COMPLETED
      if (this.#multiset) verdict = ++array[at + 2]! <= array[at + 1]! ? COMPLETED : PASS
      if (seen && flags >> FLAG_BITS !== content >> FLAG_BITS) verdict |= CONFLICT
      verdicts[place] = verdict
      if (verdict !== PASS) others++
    }
    return others
  }
}
