import { createHash } from 'node:crypto'
import { type Field, findField, findMember, parseField, type ValueRange } from './field.ts'
import { murmur128 } from './hash.ts'
import type { JsonScanner } from './json-scan.ts'
import { type Bytes, stringText } from './json-string.ts'

/** The members that name a record, the first one that it has counts. */
export const KEY_FIELDS = [
  'custom_id',
  'id',
  'question_id',
  'uuid',
  'sample_id',
  'conversation_id',
  'index',
] as const

const DEFAULT_FIELDS = KEY_FIELDS.map((name) => Buffer.from(name))
const ID = Buffer.from('id')
const INPUT = Buffer.from('input')
const REQUEST_HASH = Buffer.from('request_hash')

/**
 * Which record is which: the one rule for all binaries. Keys compare as text after decoding JSON
 * escapes, numbers by their digits as written: `1` and `"1"` are the same key, `1.0` is another.
 */
export class KeyRule {
  readonly field: Field | undefined
  #out = new Int32Array(4)

  /** @param field the only member that counts (`--key`); undefined for {@link KEY_FIELDS} */
  constructor(field?: string) {
    this.field = field === undefined ? undefined : parseField(field)
  }

  /**
   * The value that names the record which the scanner has just read, a string or a number.
   *
   * @returns undefined where it has none
   */
  find(scanner: JsonScanner, bytes: Buffer): ValueRange | undefined {
    if (this.field !== undefined) return scalarKey(bytes, findField(scanner, bytes, this.field))
    for (const name of DEFAULT_FIELDS) {
      const range = scalarKey(bytes, findMember(scanner, bytes, name))
      if (range !== undefined) return range
    }
    return undefined
  }

  /**
   * The same in a file of answers. With `--key` a record of fanout-complete has the member under
   * `input`, or its value as `id`.
   */
  findInCompleted(scanner: JsonScanner, bytes: Buffer): ValueRange | undefined {
    if (this.field === undefined) return this.find(scanner, bytes)
    const hash = findMember(scanner, bytes, REQUEST_HASH)
    const own = hash && {
      id: scalarKey(bytes, findMember(scanner, bytes, ID)),
      input: findMember(scanner, bytes, INPUT),
    }
    const direct = this.find(scanner, bytes)
    if (direct !== undefined || own === undefined) return direct
    if (own.input !== undefined && bytes[own.input.start] === 0x7b) {
      scanner.value(own.input.start)
      const inside = this.find(scanner, bytes)
      if (inside !== undefined) return inside
    }
    return own.id
  }

  /**
   * The 128-bit fingerprint of a key's text.
   *
   * @returns four 32-bit words, overwritten by the next call
   */
  fingerprint(bytes: Buffer, range: ValueRange): Int32Array {
    const text = keyText(bytes, range)
    murmur128(text.bytes, text.start, text.end, 0, this.#out)
    return this.#out
  }

  /** The fingerprint of a key that is text already. */
  fingerprintOfText(text: string): Int32Array {
    const bytes = Buffer.from(text)
    murmur128(bytes, 0, bytes.length, 0, this.#out)
    return this.#out
  }
}

/** The text of a key token: a string decoded, a number as its digits. */
export function keyText(bytes: Buffer, range: ValueRange): Bytes {
  if (bytes[range.start] !== 0x22) return { bytes, start: range.start, end: range.end }
  return stringText(bytes, range.start, range.end)
}

/**
 * The key of a record without a named one: `sha256:` and the first 16 hex digits of the SHA-256 of
 * its line without the white space around it.
 */
export function lineKey(bytes: Buffer, start: number, end: number): string {
  let from = start
  let to = end
  while (from < to && bytes[from]! <= 0x20) from++
  while (to > from && bytes[to - 1]! <= 0x20) to--
  const digest = createHash('sha256').update(bytes.subarray(from, to)).digest('hex')
  return `sha256:${digest.slice(0, 16)}`
}

/** The value if it may be a key, which a string and a number may. */
export function scalarKey(bytes: Buffer, range: ValueRange | undefined): ValueRange | undefined {
  if (range === undefined) return undefined
  const first = bytes[range.start]!
  const isScalar = first === 0x22 || first === 0x2d || (first >= 0x30 && first <= 0x39)
  return isScalar ? range : undefined
}
