import { FingerprintTable } from './fingerprint-table.ts'

/** Codes at most: damaged data must not fill the memory. */
const MOST_CODES = 100
const OTHERS = 'others'

/**
 * Failures by code. A record that fails again is one record, and one that has an answer, too, is
 * none. Holds 20 to 30 bytes for each record that failed, and nothing for the others.
 */
export class OpenFailures {
  /** For each key the number of its code, from 1; negative once it is answered. */
  #keys = new FingerprintTable(1)
  #codes: { code: string; open: number; answered: number }[] = []
  #numbers = new Map<string, number>()

  /** Records without an answer. */
  get count(): number {
    return this.#codes.reduce((sum, { open }) => sum + open, 0)
  }

  /** @param key the fingerprint of the record's key; undefined where it has none */
  fail(code: string, key: Int32Array | undefined): void {
    const number = this.#number(code)
    if (key !== undefined) {
      this.#keys.place(key)
      const { array, at } = this.#keys
      if (array[at]! < 0) return
      if (array[at]! > 0) this.#codes[array[at]! - 1]!.open--
      array[at] = number
    }
    this.#codes[number - 1]!.open++
  }

  /** There is an answer for a key, before or after its failure. */
  answer(key: Int32Array): void {
    if (!this.#keys.find(key)) return
    const { array, at } = this.#keys
    if (array[at]! < 0) return
    const code = this.#codes[array[at]! - 1]!
    code.open--
    code.answered++
    array[at] = -array[at]!
  }

  /** How many records failed with each code and have no answer, and how many have one. */
  byCode(): { open: Record<string, number>; answered: Record<string, number> } {
    const of = (which: 'open' | 'answered'): Record<string, number> => {
      const entries = this.#codes.map((code) => [code.code, code[which]] as const)
      const counted = entries.filter(([, count]) => count > 0)
      return Object.fromEntries(counted.toSorted((a, b) => b[1] - a[1]))
    }
    return { open: of('open'), answered: of('answered') }
  }

  #number(name: string): number {
    const code = this.#codes.length < MOST_CODES ? name.slice(0, 80) : OTHERS
    const known = this.#numbers.get(name.slice(0, 80)) ?? this.#numbers.get(code)
    if (known !== undefined) return known
    this.#codes.push({ code, open: 0, answered: 0 })
    this.#numbers.set(code, this.#codes.length)
    return this.#codes.length
  }
}
