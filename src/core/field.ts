import { type JsonScanner, MEMBER_STRIDE } from './json-scan.ts'
import { parseString, sameBytes, stringText } from './json-string.ts'

/** A member's name as a person gives it: `id`, or `metadata.id` to reach inside. */
export interface Field {
  name: string
  /** The whole name as one key, which wins where a record has it, and the steps between its dots. */
  whole: Buffer
  steps: Buffer[]
}

/** Where a value lies in the buffer. */
export interface ValueRange {
  start: number
  end: number
}

export function parseField(name: string): Field {
  return {
    name,
    whole: Buffer.from(name),
    steps: name.split('.').map((step) => Buffer.from(step)),
  }
}

/**
 * Finds a field in the record that the scanner has just read. A key that is given twice: the last
 * one counts. Reading inside a value uses the scanner again and leaves it at that value.
 */
export function findField(
  scanner: JsonScanner,
  bytes: Buffer,
  field: Field,
): ValueRange | undefined {
  const whole = findMember(scanner, bytes, field.whole)
  if (whole !== undefined || field.steps.length === 1) return whole
  let range: ValueRange | undefined
  for (const [index, step] of field.steps.entries()) {
    if (range !== undefined) scanner.value(range.start)
    range = index > 0 && bytes[range!.start] !== 0x7b ? undefined : findMember(scanner, bytes, step)
    if (range === undefined) return undefined
  }
  return range
}

/** The value of the last top-level member with this name, by bytes after decoding escapes. */
export function findMember(
  scanner: JsonScanner,
  bytes: Buffer,
  name: Buffer,
): ValueRange | undefined {
  const { members, suspect } = scanner
  for (let index = scanner.memberCount - 1; index >= 0; index--) {
    const at = index * MEMBER_STRIDE
    if (isNamed(bytes, members[at]!, members[at + 1]!, name, suspect)) {
      return { start: members[at + 2]!, end: members[at + 3]! }
    }
  }
  return undefined
}

/**
 * Whether the key token at `start` to `end` spells `name`.
 *
 * @param mayEscape whether the key can hold an escape: the scanner has told so of its value
 */
export function isNamed(
  bytes: Buffer,
  start: number,
  end: number,
  name: Buffer,
  mayEscape: boolean,
): boolean {
  const length = end - start - 2
  if (mayEscape && bytes.subarray(start, end).includes(0x5c)) {
    return sameBytes(stringText(bytes, start, end), { bytes: name, start: 0, end: name.length })
  }
  if (length !== name.length) return false
  for (let i = 0; i < length; i++) if (bytes[start + 1 + i] !== name[i]) return false
  return true
}

/** The text of a string value, or undefined where it is no string. */
export function stringAt(bytes: Buffer, range: ValueRange | undefined): string | undefined {
  if (range === undefined || bytes[range.start] !== 0x22) return undefined
  return parseString(bytes, range.start, range.end)
}

/** Whether a value is written as this very token. */
export function isToken(bytes: Buffer, { start, end }: ValueRange, token: Buffer): boolean {
  if (end - start !== token.length) return false
  for (let i = 0; i < token.length; i++) if (bytes[start + i] !== token[i]) return false
  return true
}

/** Whether a value that begins with this byte is a string or a number. */
export function isScalar(first: number): boolean {
  return first === 0x22 || first === 0x2d || (first >= 0x30 && first <= 0x39)
}
