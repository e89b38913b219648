import { basename } from 'node:path'
import { ByteBuilder } from '../../core/byte-builder.ts'
import type { ValueRange } from '../../core/field.ts'
import type { JsonScanner } from '../../core/json-scan.ts'
import { KEY_FIELDS, KeyRule } from '../../core/key.ts'
import { MemberFinder } from '../../core/member-finder.ts'
import { ToolError } from '../../core/tool-error.ts'
import { STDIN_NAME } from '../../files/input.ts'
import type { RowPlace } from './row-handler.ts'

const QUOTE = 0x22

/**
 * The ids of records: the row's own key, as it is written, else the file's name and the row's
 * number. The name is without folders and without .gz or .zst, so that a data set gives the same ids
 * wherever it lies.
 */
export class RecordIds {
  /** The token of the last id. */
  readonly token = new ByteBuilder(256)
  #rule: KeyRule
  #finder = new MemberFinder(KEY_FIELDS)
  #whole: boolean
  #file = ''
  #name = ''
  /** Names that have made ids, and of which file. */
  #users = new Map<string, string>()

  /** @param wholePath make ids of the path as it was given, where names alone would repeat */
  constructor(key: string | undefined, wholePath: boolean) {
    this.#rule = new KeyRule(key)
    this.#whole = wholePath
  }

  /** Whether finding the key moves the scanner. */
  get reachesInside(): boolean {
    return (this.#rule.field?.steps.length ?? 1) > 1
  }

  /** Finds or makes the id of the row that the scanner has just read. */
  of(scanner: JsonScanner, bytes: Buffer, place: RowPlace): void {
    this.token.length = 0
    const key = this.#mayHaveKey(scanner, bytes) ? this.#rule.find(scanner, bytes) : undefined
    if (key !== undefined) this.token.append(bytes, key.start, key.end)
    else this.token.append(Buffer.from(JSON.stringify(`${this.#nameOf(place)}:${place.row}`)))
  }

  /** The token of the same id as one of several samples: `"x#0"`. */
  sample(id: Buffer, { start, end }: ValueRange, index: number): void {
    const quoted = id[start] === QUOTE
    this.token.length = 0
    this.token.byte(QUOTE)
    this.token.append(id, quoted ? start + 1 : start, quoted ? end - 1 : end)
    this.token.append(Buffer.from(`#${index}"`))
  }

  /** Most data sets have no ids: one look spares the rule seven. */
  #mayHaveKey(scanner: JsonScanner, bytes: Buffer): boolean {
    if (this.#rule.field !== undefined) return true
    this.#finder.look(scanner, bytes)
    return this.#finder.found.some((index) => index >= 0)
  }

  #nameOf({ file }: RowPlace): string {
    if (file === this.#file) return this.#name
    const path = file === STDIN_NAME ? 'stdin' : file
    const name = (this.#whole ? path : basename(path)).replace(/\.(gz|zst)$/, '')
    const other = this.#users.get(name)
    if (other !== undefined && other !== file) {
      const message =
        `its rows have no id of their own, and those made from its name would be the ids of ${other} ` +
        'again: rename one of them, or make ids from the whole paths with --path-ids'
      throw new ToolError('same-name', message, { place: { file } })
    }
    this.#users.set(name, file)
    this.#file = file
    this.#name = name
    return name
  }
}
