import type { ValueRange } from './field.ts'
import { FingerprintTable } from './fingerprint-table.ts'
import { murmur128 } from './hash.ts'

/**
 * Which records have an answer, and which lines of answers have been read before, byte for byte; 20 to
 * 32 bytes of memory for a record, and 12 to 24 for each further answer to it.
 */
export class KnownLines {
  /** For each key a hash of its first line: of the lines of one record 32 bits tell enough. */
  #keys = new FingerprintTable(1)
  /** The lines that are not the first of their record. */
  #further = new FingerprintTable(0)
  #words = new Int32Array(4)

  /**
   * Whether it has been asked about the same bytes before.
   *
   * @param key the fingerprint of the record's key
   */
  isKnown(key: Int32Array, bytes: Buffer, { start, end }: ValueRange): boolean {
    const words = this.#words
    murmur128(bytes, start, end, 0, words)
    if (!this.#keys.place(key)) {
      this.#keys.array[this.#keys.at] = words[0]!
      return false
    }
    return this.#keys.array[this.#keys.at] === words[0] || this.#further.place(words)
  }

  /** Whether any line of the record has been read. */
  hasKey(key: Int32Array): boolean {
    return this.#keys.find(key)
  }
}
