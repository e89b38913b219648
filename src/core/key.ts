import { failureId } from './failure-input.ts'
import {
  type Field,
  findField,
  findMember,
  isNamed,
  isScalar,
  isToken,
  parseField,
  type ValueRange,
} from './field.ts'
import { murmur128 } from './hash.ts'
import { type JsonScanner, MEMBER_STRIDE } from './json-scan.ts'
import { type Bytes, stringText } from './json-string.ts'
import { recordEnd, recordStart } from './line-bounds.ts'

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
const ANY_FIELD = [...KEY_FIELDS.keys()]
/** Which of them have a name of so many bytes, modulo 32. */
const FIELDS_OF_LENGTH = Array.from({ length: 32 }, (_, length) =>
  ANY_FIELD.filter((field) => KEY_FIELDS[field]!.length === length),
)
const ID = Buffer.from('id')
const CUSTOM_ID = Buffer.from('custom_id')
const INPUT = Buffer.from('input')
const REQUEST_HASH = Buffer.from('request_hash')
const BATCH_ID = Buffer.from('"batch_req_')

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
   * The names of the members of which the first scalar one is the key of any record but a failure's;
   * undefined where it may lie deeper.
   */
  get names(): readonly Buffer[] | undefined {
    if (this.field === undefined) return DEFAULT_FIELDS
    return this.field.steps.length === 1 ? [this.field.whole] : undefined
  }

  /**
   * The value that names the record which the scanner has just read, a string or a number; of a
   * failure record, which stands for its input, its id.
   *
   * @returns undefined where it has none
   */
  find(scanner: JsonScanner, bytes: Buffer): ValueRange | undefined {
    if (this.field === undefined) return findDefault(scanner, bytes)
    return failureId(scanner, bytes) ?? scalarKey(bytes, findField(scanner, bytes, this.field))
  }

  /**
   * The same in a file of answers. With `--key` an answer of fanout-complete, whose own members
   * (`text`, `model`, `status` and more) are none of the record's, has the field under `input`, or
   * its value as `id`, of a batch line as `custom_id`.
   */
  findInCompleted(scanner: JsonScanner, bytes: Buffer): ValueRange | undefined {
    if (this.field === undefined) return this.find(scanner, bytes)
    if (findMember(scanner, bytes, REQUEST_HASH) !== undefined) {
      const id = scalarKey(bytes, findMember(scanner, bytes, ID))
      const input = findMember(scanner, bytes, INPUT)
      if (input === undefined || bytes[input.start] !== 0x7b) return id
      scanner.value(input.start)
      return scalarKey(bytes, findField(scanner, bytes, this.field)) ?? id
    }
    const batchId = isBatchAnswer(scanner, bytes)
      ? scalarKey(bytes, findMember(scanner, bytes, CUSTOM_ID))
      : undefined
    return batchId ?? this.find(scanner, bytes)
  }

  /**
   * The 128-bit fingerprint of a key's text.
   *
   * @returns four 32-bit words, overwritten by the next call
   */
  fingerprint(bytes: Buffer, range: ValueRange): Int32Array {
    fingerprintInto(bytes, range, this.#out, 0)
    return this.#out
  }

  /** The fingerprint of a key that is text already. */
  fingerprintOfText(text: string): Int32Array {
    const bytes = Buffer.from(text)
    murmur128(bytes, 0, bytes.length, 0, this.#out)
    return this.#out
  }
}

/**
 * The first of the default fields with a value that may be a key, in one pass over the members; of a
 * member given twice the last one counts.
 */
function findDefault(scanner: JsonScanner, bytes: Buffer): ValueRange | undefined {
  const { members, memberCount, suspect } = scanner
  let met = 0
  let best = DEFAULT_FIELDS.length
  let bestAt = 0
  for (let at = (memberCount - 1) * MEMBER_STRIDE; at >= 0; at -= MEMBER_STRIDE) {
    const start = members[at]!
    const end = members[at + 1]!
    // A key with an escape may be shorter than it looks.
    const fields = suspect ? ANY_FIELD : FIELDS_OF_LENGTH[(end - start - 2) & 31]!
    for (let i = 0; i < fields.length; i++) {
      const field = fields[i]!
      if (!isNamed(bytes, start, end, DEFAULT_FIELDS[field]!, suspect)) continue
      const isFirst = ((met >>> field) & 1) === 0
      met |= 1 << field
      if (isFirst && field < best && isScalar(bytes[members[at + 2]!]!)) {
        best = field
        bestAt = at
      }
      break
    }
  }
  if (best === DEFAULT_FIELDS.length) return undefined
  // Only a custom_id goes before an id.
  const failed = best === 0 ? failureId(scanner, bytes) : undefined
  if (failed !== undefined) return failed
  return { start: members[bestAt + 2]!, end: members[bestAt + 3]! }
}

/** Whether the record that the scanner has just read has the `id` of a batch line's answer. */
function isBatchAnswer(scanner: JsonScanner, bytes: Buffer): boolean {
  const id = findMember(scanner, bytes, ID)
  if (id === undefined || id.end - id.start <= BATCH_ID.length) return false
  return isToken(bytes, { start: id.start, end: id.start + BATCH_ID.length }, BATCH_ID)
}

/** Writes the four words of a key's fingerprint to `out` from `to` on. */
export function fingerprintInto(
  bytes: Buffer,
  range: ValueRange,
  out: Int32Array,
  to: number,
): void {
  const text = keyText(bytes, range)
  murmur128(text.bytes, text.start, text.end, 0, out, to)
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
  const from = recordStart(bytes, start, end)
  const record = bytes.subarray(from, recordEnd(bytes, from, end))
  // Few inputs need it, and to import it takes 4 ms in each thread.
  const digest = process.getBuiltinModule('node:crypto').hash('sha256', record)
  return `sha256:${digest.slice(0, 16)}`
}

/** The value if it may be a key, which a string and a number may. */
export function scalarKey(bytes: Buffer, range: ValueRange | undefined): ValueRange | undefined {
  if (range === undefined) return undefined
  return isScalar(bytes[range.start]!) ? range : undefined
}
