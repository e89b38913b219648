import { findMember, isScalar, stringAt, type ValueRange } from './field.ts'
import type { JsonScanner } from './json-scan.ts'
import type { SourceLine } from './record-error.ts'
import type { RecordText } from './record-text.ts'

/** The member that no failure record is without, and few others have. */
export const ERROR = Buffer.from('error')
const ID = Buffer.from('id')
const STATUS = Buffer.from('status')
const INPUT = Buffer.from('input')
const INPUT_TEXT = Buffer.from('input_text')
const INPUT_BASE64 = Buffer.from('input_base64')
const QUOTE = 0x22

/** What a failure record stands for. */
export interface FailureInput {
  id: ValueRange
  /** Undefined where the failed line was no JSON. */
  input: ValueRange | undefined
  line: SourceLine
}

/**
 * The key of the failure record that the scanner has just read; undefined where it is none. Nearly
 * all records have no `error` and cost one pass over their names.
 */
export function failureId(scanner: JsonScanner, bytes: Buffer): ValueRange | undefined {
  const error = findMember(scanner, bytes, ERROR)
  if (error === undefined || bytes[error.start] !== 0x7b) return undefined
  const id = findMember(scanner, bytes, ID)
  if (id === undefined || !isScalar(bytes[id.start]!)) return undefined
  if (stringAt(bytes, findMember(scanner, bytes, STATUS)) !== 'error') return undefined
  return hasInput(scanner, bytes) ? id : undefined
}

function hasInput(scanner: JsonScanner, bytes: Buffer): boolean {
  if (findMember(scanner, bytes, INPUT) !== undefined) return true
  return [INPUT_TEXT, INPUT_BASE64].some((name) => {
    const value = findMember(scanner, bytes, name)
    return value !== undefined && bytes[value.start] === QUOTE
  })
}

/**
 * Where what the failure record stands for lies in it; undefined where the record that the scanner
 * has just read is none, or the failed line was no JSON.
 */
export function failedRange(scanner: JsonScanner, bytes: Buffer): ValueRange | undefined {
  return failureId(scanner, bytes) && findMember(scanner, bytes, INPUT)
}

/** What the failure record stands for that the scanner has just read; undefined where it is none. */
export function failureInput(
  scanner: JsonScanner,
  bytes: Buffer,
  text: RecordText,
): FailureInput | undefined {
  const id = failureId(scanner, bytes)
  if (id === undefined) return undefined
  const input = findMember(scanner, bytes, INPUT)
  if (input !== undefined) return { id, input, line: { json: text.of(input) } }
  const own = stringAt(bytes, findMember(scanner, bytes, INPUT_TEXT))
  if (own !== undefined) return { id, input, line: { text: own } }
  const base64 = stringAt(bytes, findMember(scanner, bytes, INPUT_BASE64))
  return base64 === undefined ? undefined : { id, input, line: { base64 } }
}
