import type { Context } from '../../cli/command.ts'
import { contentHash } from '../../core/content-hash.ts'
import { findMember, stringAt } from '../../core/field.ts'
import { FingerprintTable } from '../../core/fingerprint-table.ts'
import type { KeyRule } from '../../core/key.ts'
import { isInShard, type Shard } from '../../core/shard.ts'
import { noCompletedCounts, readCompleted } from '../completed-files.ts'

const REQUEST_HASH = Buffer.from('request_hash')

/** Instead of a file's number: this run's input has given the key, and that is being asked. */
const ASKED = -1

/** The answers that are there already: which keys, and to which question. */
export class Answered {
  exitCode = 0
  /** A file whose answer was to another question, for messages. */
  file = ''
  #rule: KeyRule
  #shard: Shard | undefined
  /**
   * Three words a key: the request hash, and the number of its file from 1, 0 where it has no hash; or
   * a hash of the record that is asked, and ASKED.
   */
  #table = new FingerprintTable(3)
  #files: string[] = []
  /** Keys that several files answer, to different questions: the request hashes by file. */
  #differing = new Map<string, Map<number, string>>()

  /** @param shard the only keys that are asked for */
  constructor(rule: KeyRule, shard: Shard | undefined) {
    this.#rule = rule
    this.#shard = shard
  }

  /** Reads files of answers by the rule of dedupe-completed. */
  async read(context: Context, files: readonly string[]): Promise<void> {
    this.exitCode = await readCompleted(context, files, {
      rule: this.#rule,
      counts: noCompletedCounts(),
      redo: new Set(),
      onFile: (file) => this.#files.push(file),
      onLine: (fingerprint, { scanner }, bytes, start) => {
        if (!isInShard(this.#shard, fingerprint)) return
        scanner.again(start)
        const hash = stringAt(bytes, findMember(scanner, bytes, REQUEST_HASH))
        this.#note(fingerprint, hash)
      },
    })
  }

  /**
   * Whether a record is answered.
   *
   * @param key as text
   * @param strict an answer to another question in any file counts, even beside the right one
   * @returns 'changed' where the answer is to another question
   */
  state(key: string, hash: () => string, strict: boolean): 'open' | 'answered' | 'changed' {
    const fingerprint = this.#rule.fingerprintOfText(key)
    if (!this.#table.find(fingerprint)) return 'open'
    const { array, at } = this.#table
    if (array[at + 2] === ASKED) return 'open'
    if (array[at + 2] === 0) return 'answered'
    const asked = hash()
    const [high, low] = words(asked)
    const matches = array[at] === high && array[at + 1] === low
    if (!matches) this.file = this.#fileOf(array[at + 2]!)
    if (this.#differing.size === 0) return matches ? 'answered' : 'changed'
    const others = [...(this.#differing.get(fingerprint.join()) ?? [])]
    const foreign = others.find(([, other]) => other !== asked)
    if (strict && foreign !== undefined) {
      this.file = this.#fileOf(foreign[0])
      return 'changed'
    }
    return matches || others.some(([, other]) => other === asked) ? 'answered' : 'changed'
  }

  /**
   * Takes a record that is to be asked. Of a key that comes twice in the input the first one counts,
   * as in dedupe-completed.
   *
   * @param key as text
   * @returns 'conflict' where the key stood for another record before
   */
  take(key: string, source: string): 'first' | 'repeated' | 'conflict' {
    const fingerprint = this.#rule.fingerprintOfText(key)
    const bytes = Buffer.from(source)
    const content = contentHash(bytes, 0, bytes.length)
    const table = this.#table
    table.place(fingerprint)
    const { array, at } = table
    if (array[at + 2] === ASKED) return array[at] === content ? 'repeated' : 'conflict'
    array[at] = content
    array[at + 2] = ASKED
    return 'first'
  }

  /** The last answer in a file counts for that file; another file's stands beside it. */
  #note(fingerprint: Int32Array, hash: string | undefined): void {
    const table = this.#table
    const file = this.#files.length
    table.place(fingerprint)
    if (hash === undefined || !/^[0-9a-f]{16}$/.test(hash)) return
    const { array, at } = table
    const [high, low] = words(hash)
    const isFirst = array[at + 2] === 0 || array[at + 2] === file
    if (!isFirst && (array[at] !== high || array[at + 1] !== low))
      this.#differ(fingerprint, hash, file)
    else {
      array[at] = high
      array[at + 1] = low
      array[at + 2] = file
    }
  }

  #fileOf(number: number): string {
    return this.#files[number - 1] ?? ''
  }

  #differ(fingerprint: Int32Array, hash: string, file: number): void {
    const key = fingerprint.join()
    const others = this.#differing.get(key) ?? new Map<number, string>()
    others.set(file, hash)
    this.#differing.set(key, others)
  }
}

function words(hash: string): [number, number] {
  return [Number.parseInt(hash.slice(0, 8), 16) | 0, Number.parseInt(hash.slice(8), 16) | 0]
}
