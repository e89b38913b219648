import type { Context } from '../../cli/command.ts'
import { findMember, stringAt } from '../../core/field.ts'
import { FingerprintTable } from '../../core/fingerprint-table.ts'
import type { KeyRule } from '../../core/key.ts'
import { readCompleted } from '../completed-files.ts'

const REQUEST_HASH = Buffer.from('request_hash')

/** The answers that are there already: which keys, and to which question. */
export class Answered {
  exitCode = 0
  #rule: KeyRule
  /** Two words a key: the request hash, 0 where the answer has none. */
  #table = new FingerprintTable(2)

  constructor(rule: KeyRule) {
    this.#rule = rule
  }

  /** Reads files of answers by the rule of dedupe-completed. */
  async read(context: Context, files: readonly string[]): Promise<void> {
    const { exitCode } = await readCompleted(context, files, {
      rule: this.#rule,
      redo: new Set(),
      onAnswer: (fingerprint, { scanner }, bytes, start) => {
        scanner.again(start)
        const hash = stringAt(bytes, findMember(scanner, bytes, REQUEST_HASH))
        this.#note(fingerprint, hash)
      },
    })
    this.exitCode = exitCode
  }

  /**
   * Whether a record is answered.
   *
   * @param key as text
   * @returns 'changed' where the answer is to another question
   */
  state(key: string, hash: () => string): 'open' | 'answered' | 'changed' {
    if (!this.#table.find(this.#rule.fingerprintOfText(key))) return 'open'
    const { array, at } = this.#table
    if (array[at] === 0 && array[at + 1] === 0) return 'answered'
    const [high, low] = words(hash())
    return array[at] === high && array[at + 1] === low ? 'answered' : 'changed'
  }

  #note(fingerprint: Int32Array, hash: string | undefined): void {
    const table = this.#table
    if (!table.find(fingerprint)) table.insert(fingerprint)
    if (hash === undefined || !/^[0-9a-f]{16}$/.test(hash)) return
    const [high, low] = words(hash)
    table.array[table.at] = high
    table.array[table.at + 1] = low
  }
}

function words(hash: string): [number, number] {
  return [Number.parseInt(hash.slice(0, 8), 16) | 0, Number.parseInt(hash.slice(8), 16) | 0]
}
