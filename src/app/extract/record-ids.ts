import { basename } from 'node:path'
import type { ByteBuilder } from '../../core/byte-builder.ts'
import type { ValueRange } from '../../core/field.ts'
import type { JsonScanner } from '../../core/json-scan.ts'
import { KeyRule } from '../../core/key.ts'
import { ToolError } from '../../core/tool-error.ts'
import { STDIN_NAME } from '../../files/input.ts'
import type { RowPlace } from './row-handler.ts'

const QUOTE = 0x22
const HASH_SIGN = 0x23

/**
 * The ids of records: the row's own key, as it is written, else the file's name and the row's
 * number. The name is without folders and without .gz or .zst, so that a data set gives the same ids
 * wherever it lies.
 */
export class RecordIds {
  #rule: KeyRule
  #whole: boolean
  #file = ''
  /** What made ids begin with, as the beginning of a string token. */
  #prefix: Buffer = Buffer.alloc(0)
  /** Names that have made ids, and of which file. */
  #users = new Map<string, string>()

  /** @param wholePath make ids of the path as it was given, where names alone would repeat */
  constructor(key: string | undefined, wholePath: boolean) {
    this.#rule = new KeyRule(key)
    this.#whole = wholePath
  }

  /** Whether one member alone is the key, wherever it lies. */
  get isNamed(): boolean {
    return this.#rule.field !== undefined
  }

  /** Whether finding the key moves the scanner. */
  get reachesInside(): boolean {
    return (this.#rule.field?.steps.length ?? 1) > 1
  }

  /** The key by --key of the row that the scanner has just read. */
  named(scanner: JsonScanner, bytes: Buffer): ValueRange | undefined {
    return this.#rule.find(scanner, bytes)
  }

  /** Appends an id made from the row's place. */
  appendMade(out: ByteBuilder, { file, row }: RowPlace): void {
    if (file !== this.#file) this.#begin(file)
    out.append(this.#prefix)
    out.digits(row)
    out.byte(QUOTE)
  }

  #begin(file: string): void {
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
    this.#prefix = Buffer.from(JSON.stringify(`${name}:`).slice(0, -1))
  }
}

/** Appends the id at `start` to `end` as that of one of several samples: `"x#0"`. */
export function appendSampleId(
  out: ByteBuilder,
  id: Buffer,
  start: number,
  end: number,
  sample: number,
): void {
  const quoted = id[start] === QUOTE
  out.byte(QUOTE)
  out.append(id, quoted ? start + 1 : start, quoted ? end - 1 : end)
  out.byte(HASH_SIGN)
  out.digits(sample)
  out.byte(QUOTE)
}
