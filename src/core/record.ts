import { failureInput } from './failure-input.ts'
import { type Field, findMember, type ValueRange } from './field.ts'
import { type JsonScanner, MEMBER_STRIDE } from './json-scan.ts'
import { type KeyRule, keyText, lineKey } from './key.ts'
import { asksOf, batchPath, ownSystem, type RecordShape, shapeOf } from './record-asks.ts'
import { RecordError } from './record-error.ts'
import { RecordText } from './record-text.ts'

/** One record to be answered. Texts of JSON are as they were written, never encoded again. */
export interface InputRecord {
  /** The key as text, for messages. */
  key: string
  /** The key's own token: `81`, `"81"`, `9007199254740993`. */
  idToken: string
  shape: RecordShape
  /**
   * What is asked, as JSON tokens: the messages array; every user turn; the prompt; the batch body.
   */
  asks: string[]
  /** Of a batch line: the path that its url names, without the `/v1`. */
  path: string
  /** A system message of the record's own, as a JSON string: a `system` text beside `turns`. */
  system: string | undefined
  /** The record's other members as the text of a JSON object. */
  rest: string
  /** Members that are sent along (`--send`), their values as JSON text; they go before options. */
  sent: ReadonlyMap<string, string>
  /** The whole record as it came, which a failure keeps. */
  source: string
}

export interface RecordRules {
  key: KeyRule
  /** Another text field that is the prompt. */
  promptField: Field | undefined
  /** Names of members that are sent along. */
  send: Buffer[]
}

/**
 * Reads the record that lies in `range`. A failure record stands for its `input` under its `id`.
 *
 * @param line the text of the range, where the caller has it
 * @throws RecordError where it cannot be asked
 */
export function readRecord(
  scanner: JsonScanner,
  bytes: Buffer,
  range: ValueRange,
  rules: RecordRules,
  line?: string,
): InputRecord {
  if (bytes[range.start] !== 0x7b) {
    throw new RecordError('no-prompt', 'the line is no JSON object')
  }
  scanner.again(range.start)
  const text = new RecordText(bytes, range, line)
  const failed = failureInput(scanner, bytes, text)
  if (failed === undefined) return ownRecord(scanner, bytes, range, rules, text)
  try {
    const record = failedRecord(scanner, bytes, failed.input, rules, text)
    return { ...record, key: keyOf(bytes, failed.id, text), idToken: text.of(failed.id) }
  } catch (error) {
    if (error instanceof RecordError) {
      error.standsFor = { idToken: text.of(failed.id), input: failed.line }
    }
    throw error
  }
}

/** The record that a failure record holds. */
function failedRecord(
  scanner: JsonScanner,
  bytes: Buffer,
  input: ValueRange | undefined,
  rules: RecordRules,
  text: RecordText,
): InputRecord {
  if (input === undefined) {
    throw new RecordError('bad-input', 'the failed line was no JSON: mend it where it came from')
  }
  if (bytes[input.start] !== 0x7b) {
    throw new RecordError('no-prompt', 'the failed line was no JSON object')
  }
  scanner.value(input.start)
  return ownRecord(scanner, bytes, input, rules, text)
}

function ownRecord(
  scanner: JsonScanner,
  bytes: Buffer,
  range: ValueRange,
  rules: RecordRules,
  text: RecordText,
): InputRecord {
  const named = rules.key.find(scanner, bytes)
  // A key that lies deeper has moved the scanner.
  scanner.again(range.start)
  const key = named && keyOf(bytes, named, text)
  const hash = key === undefined ? lineKey(bytes, range.start, range.end) : ''
  const { shape, ask } = shapeOf(scanner, bytes, rules.promptField)
  scanner.again(range.start)
  const path = shape === 'batch' ? batchPath(scanner, bytes) : ''
  const system = shape === 'turns' ? ownSystem(scanner, bytes) : undefined
  return {
    key: key ?? hash,
    idToken: named === undefined ? JSON.stringify(hash) : text.of(named),
    shape,
    path,
    system: system && text.of(system),
    rest: otherMembers(scanner, text, named, ask, system),
    sent: sentMembers(scanner, bytes, text, rules.send),
    source: text.of(range),
    // Reads inside the record: the members above must have been found before.
    asks: asksOf(scanner, bytes, text, shape, ask),
  }
}

/** The text of a key token; a lone surrogate, which is no text, is U+FFFD. */
function keyOf(bytes: Buffer, key: ValueRange, text: RecordText): string {
  const token = text.of(key)
  if (!token.startsWith('"')) return token
  if (!token.includes('\\')) return token.slice(1, -1)
  const { bytes: from, start, end } = keyText(bytes, key)
  return Buffer.from(from.subarray(start, end)).toString()
}

/** The members but those whose values are given, as the text of a JSON object. */
function otherMembers(
  { members, memberCount }: JsonScanner,
  text: RecordText,
  key: ValueRange | undefined,
  ask: ValueRange,
  system: ValueRange | undefined,
): string {
  let others = ''
  for (let index = 0; index < memberCount; index++) {
    const at = index * MEMBER_STRIDE
    const start = members[at + 2]!
    if (start === key?.start || start === ask.start || start === system?.start) continue
    const name = text.of({ start: members[at]!, end: members[at + 1]! })
    const value = text.of({ start, end: members[at + 3]! })
    others += `${others === '' ? '' : ','}${name}:${value}`
  }
  return `{${others}}`
}

const NOTHING_SENT: ReadonlyMap<string, string> = new Map()

function sentMembers(
  scanner: JsonScanner,
  bytes: Buffer,
  text: RecordText,
  names: readonly Buffer[],
): ReadonlyMap<string, string> {
  if (names.length === 0) return NOTHING_SENT
  const sent = new Map<string, string>()
  for (const name of names) {
    const value = findMember(scanner, bytes, name)
    if (value !== undefined) sent.set(name.toString(), text.of(value))
  }
  return sent
}
