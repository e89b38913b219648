import type { ValueRange } from './field.ts'
import { type JsonScanner, MEMBER_STRIDE } from './json-scan.ts'
import { WordTable } from './word-table.ts'

/**
 * Finds several members of a record in one pass over its keys, where looking for them one by one
 * would cost more than scanning a short record. Of a member given twice the last one counts.
 */
export class MemberFinder {
  /** The scanner's index of each wanted member in the last record; -1 where it has none. */
  readonly found: Int32Array
  /** How many members of the last record were not wanted. */
  others = 0
  #names: WordTable

  constructor(names: readonly string[]) {
    this.#names = new WordTable(names)
    this.found = new Int32Array(names.length)
  }

  /** Looks at the record that the scanner has just read. */
  look(scanner: JsonScanner, bytes: Buffer): void {
    const { members, memberCount } = scanner
    const { found } = this
    for (let wanted = 0; wanted < found.length; wanted++) found[wanted] = -1
    this.others = 0
    for (let index = 0; index < memberCount; index++) {
      const at = index * MEMBER_STRIDE
      const wanted = this.#names.indexOf(bytes, members[at]!, members[at + 1]!)
      if (wanted < 0) this.others++
      else found[wanted] = index
    }
  }

  /** Whether the last record has one of the members from one place in the list to another. */
  hasAny(from: number, to: number): boolean {
    for (let wanted = from; wanted < to; wanted++) if (this.found[wanted]! >= 0) return true
    return false
  }

  /** The value of a wanted member, by its place in the list of names. */
  value(scanner: JsonScanner, wanted: number): ValueRange | undefined {
    const index = this.found[wanted]!
    if (index < 0) return undefined
    const at = index * MEMBER_STRIDE
    return { start: scanner.members[at + 2]!, end: scanner.members[at + 3]! }
  }
}
