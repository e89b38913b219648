import type { ValueRange } from './field.ts'
import { type JsonScanner, MEMBER_STRIDE } from './json-scan.ts'
import type { LongStrings } from './long-strings.ts'
import { skipString, skipValue } from './skip-value.ts'
import { WordTable } from './word-table.ts'

const COMMA = 0x2c
const COLON = 0x3a
const CLOSE_BRACE = 0x7d

/**
 * Finds several members of an object in one pass over its keys, where looking for them one by one
 * would cost more than scanning a short record. Of a member given twice the last one counts.
 */
export class MemberFinder {
  /** How many members the last object has, and how many of them were not wanted. */
  count = 0
  others = 0
  #names: WordTable
  /** Which of the objects so far is the last one. */
  #round = 0
  /** By place in the list of names: the object that had it last, where its key and value begin. */
  #rounds: Int32Array
  #keys: Int32Array
  #starts: Int32Array
  #ends: Int32Array
  /** Whether a key of the object can hold an escape. */
  #mayEscape = true

  constructor(names: readonly string[]) {
    this.#names = new WordTable(names)
    this.#rounds = new Int32Array(names.length)
    this.#keys = new Int32Array(names.length)
    this.#starts = new Int32Array(names.length)
    this.#ends = new Int32Array(names.length)
  }

  /** Looks at the object that the scanner has just read. */
  look(scanner: JsonScanner, bytes: Buffer): void {
    const { members, memberCount, suspect } = scanner
    this.#begin(suspect)
    for (let index = 0; index < memberCount; index++) {
      const at = index * MEMBER_STRIDE
      this.#member(bytes, members[at]!, members[at + 1]!, members[at + 2]!, members[at + 3]!)
    }
  }

  /**
   * Looks at the object at `start`, which a scanner has found to be JSON.
   *
   * @param longStrings that scanner's
   * @param mayEscape whether that scanner calls the value suspect
   * @returns the offset behind it
   */
  read(bytes: Buffer, start: number, longStrings?: LongStrings, mayEscape = true): number {
    this.#begin(mayEscape)
    for (let at = start + 1; ; ) {
      while (bytes[at]! <= 0x20 || bytes[at] === COMMA) at++
      if (bytes[at] === CLOSE_BRACE) return at + 1
      const key = at
      const keyEnd = skipString(bytes, key)
      at = keyEnd
      while (bytes[at]! <= 0x20 || bytes[at] === COLON) at++
      const value = at
      at = skipValue(bytes, value, longStrings)
      this.#member(bytes, key, keyEnd, value, at)
    }
  }

  has(wanted: number): boolean {
    return this.#rounds[wanted] === this.#round
  }

  /** The value of a wanted member, by its place in the list of names. */
  value(wanted: number): ValueRange | undefined {
    if (this.#rounds[wanted] !== this.#round) return undefined
    return { start: this.#starts[wanted]!, end: this.#ends[wanted]! }
  }

  /** The whole member, key and value. */
  member(wanted: number): ValueRange | undefined {
    if (this.#rounds[wanted] !== this.#round) return undefined
    return { start: this.#keys[wanted]!, end: this.#ends[wanted]! }
  }

  #begin(mayEscape: boolean): void {
    this.#mayEscape = mayEscape
    this.#round = (this.#round + 1) | 0
    this.count = 0
    this.others = 0
  }

  #member(bytes: Buffer, key: number, keyEnd: number, value: number, end: number): void {
    this.count++
    const wanted = this.#names.indexOf(bytes, key, keyEnd, this.#mayEscape)
    if (wanted < 0) {
      this.others++
      return
    }
    this.#rounds[wanted] = this.#round
    this.#keys[wanted] = key
    this.#starts[wanted] = value
    this.#ends[wanted] = end
  }
}
