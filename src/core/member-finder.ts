import { isNamed, type ValueRange } from './field.ts'
import { type JsonScanner, MEMBER_STRIDE } from './json-scan.ts'

const BACKSLASH = 0x5c
const NONE: readonly number[] = []

/**
 * Finds several members of a record in one pass over its keys, where looking for them one by one
 * would cost more than scanning a short record. Of a member given twice the last one counts.
 */
export class MemberFinder {
  /** The scanner's index of each wanted member in the last record; -1 where it has none. */
  readonly found: Int32Array
  /** How many members of the last record were not wanted. */
  others = 0
  #names: readonly Buffer[]
  /** Places in `#names` by length of the name. */
  #byLength: number[][] = []

  constructor(names: readonly string[]) {
    this.#names = names.map((name) => Buffer.from(name))
    this.found = new Int32Array(names.length)
    for (const [index, { length }] of this.#names.entries()) {
      const list = (this.#byLength[length] ??= [])
      list.push(index)
    }
  }

  /** Looks at the record that the scanner has just read. */
  look(scanner: JsonScanner, bytes: Buffer): void {
    const { members, memberCount } = scanner
    this.found.fill(-1)
    this.others = 0
    for (let index = 0; index < memberCount; index++) {
      const start = members[index * MEMBER_STRIDE]!
      const end = members[index * MEMBER_STRIDE + 1]!
      const wanted = this.#indexOf(bytes, start, end)
      if (wanted < 0) this.others++
      else this.found[wanted] = index
    }
  }

  /** The value of a wanted member, by its place in the list of names. */
  value(scanner: JsonScanner, wanted: number): ValueRange | undefined {
    const index = this.found[wanted]!
    if (index < 0) return undefined
    const at = index * MEMBER_STRIDE
    return { start: scanner.members[at + 2]!, end: scanner.members[at + 3]! }
  }

  #indexOf(bytes: Buffer, start: number, end: number): number {
    const from = start + 1
    const length = end - start - 2
    for (const index of this.#byLength[length] ?? NONE) {
      const name = this.#names[index]!
      let at = 0
      while (at < length && bytes[from + at] === name[at]) at++
      if (at === length) return index
    }
    // A key with an escape may spell a name that is shorter.
    for (let at = from; at < end; at++) {
      if (bytes[at] === BACKSLASH) {
        return this.#names.findIndex((name) => isNamed(bytes, start, end, name))
      }
    }
    return -1
  }
}
