import { type Field, findField, findMember, stringAt, type ValueRange } from './field.ts'
import { type JsonScanner, MEMBER_STRIDE } from './json-scan.ts'
import { type KeyRule, keyText, lineKey } from './key.ts'

/** How a record asks: the member that decided it. */
export type RecordShape = 'messages' | 'turns' | 'prompt' | 'batch'

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
  sent: Map<string, string>
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

/** An input line as a failure keeps it: JSON as it is, anything else as text or base64. */
export type SourceLine = { json: string } | { text: string } | { base64: string }

/** A record that cannot be asked; the message says why and what to do. */
export class RecordError extends Error {
  readonly code: string
  /** Where the line was a failure record: the line that it stands for, and under which id. */
  standsFor: { idToken: string; input: SourceLine } | undefined

  constructor(code: string, message: string) {
    super(message)
    this.code = code
  }
}

const SHAPES: readonly { shape: RecordShape; name: Buffer }[] = [
  { shape: 'messages', name: Buffer.from('messages') },
  { shape: 'turns', name: Buffer.from('turns') },
  { shape: 'prompt', name: Buffer.from('prompt') },
  { shape: 'batch', name: Buffer.from('body') },
]
const ID = Buffer.from('id')
const STATUS = Buffer.from('status')
const ERROR = Buffer.from('error')
const INPUT = Buffer.from('input')
const INPUT_TEXT = Buffer.from('input_text')
const INPUT_BASE64 = Buffer.from('input_base64')
const URL_NAME = Buffer.from('url')
const METHOD = Buffer.from('method')
const ROLE = Buffer.from('role')
const SYSTEM = Buffer.from('system')

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
  line = text(bytes, range),
): InputRecord {
  if (bytes[range.start] !== 0x7b) {
    throw new RecordError('no-prompt', 'the line is no JSON object')
  }
  scanner.again(range.start)
  const failed = failureInput(scanner, bytes)
  if (failed === undefined) return ownRecord(scanner, bytes, range, rules, line)
  try {
    return { ...failedRecord(scanner, bytes, failed.input, rules), ...identity(bytes, failed.id) }
  } catch (error) {
    if (error instanceof RecordError) {
      error.standsFor = { idToken: text(bytes, failed.id), input: failed.line }
    }
    throw error
  }
}

interface FailureInput {
  id: ValueRange
  /** Undefined where the failed line was no JSON. */
  input: ValueRange | undefined
  line: SourceLine
}

/** What the failure record stands for that the scanner has just read; undefined where it is none. */
function failureInput(scanner: JsonScanner, bytes: Buffer): FailureInput | undefined {
  const id = findMember(scanner, bytes, ID)
  const error = findMember(scanner, bytes, ERROR)
  if (id === undefined || error === undefined || bytes[error.start] !== 0x7b) return undefined
  if (stringAt(bytes, findMember(scanner, bytes, STATUS)) !== 'error') return undefined
  const input = findMember(scanner, bytes, INPUT)
  if (input !== undefined) return { id, input, line: { json: text(bytes, input) } }
  const own = stringAt(bytes, findMember(scanner, bytes, INPUT_TEXT))
  if (own !== undefined) return { id, input, line: { text: own } }
  const base64 = stringAt(bytes, findMember(scanner, bytes, INPUT_BASE64))
  return base64 === undefined ? undefined : { id, input, line: { base64 } }
}

/** The record that a failure record holds. */
function failedRecord(
  scanner: JsonScanner,
  bytes: Buffer,
  input: ValueRange | undefined,
  rules: RecordRules,
): InputRecord {
  if (input === undefined) {
    throw new RecordError('bad-input', 'the failed line was no JSON: mend it where it came from')
  }
  if (bytes[input.start] !== 0x7b) {
    throw new RecordError('no-prompt', 'the failed line was no JSON object')
  }
  scanner.value(input.start)
  return ownRecord(scanner, bytes, input, rules, text(bytes, input))
}

function ownRecord(
  scanner: JsonScanner,
  bytes: Buffer,
  range: ValueRange,
  rules: RecordRules,
  source: string,
): InputRecord {
  const key = rules.key.find(scanner, bytes)
  // A key that lies deeper has moved the scanner.
  scanner.again(range.start)
  const own = key === undefined ? hashIdentity(bytes, range) : identity(bytes, key)
  const { shape, ask } = shapeOf(scanner, bytes, rules)
  scanner.again(range.start)
  const path = shape === 'batch' ? batchPath(scanner, bytes) : ''
  const system = shape === 'turns' ? ownSystem(scanner, bytes) : undefined
  const rest = otherMembers(scanner, bytes, [key, ask, system])
  const sent = sentMembers(scanner, bytes, rules.send)
  return {
    ...own,
    shape,
    asks: asksOf(scanner, bytes, shape, ask),
    path,
    system: system && text(bytes, system),
    rest,
    sent,
    source,
  }
}

/** As extract-prompts writes it: a conversation's system message cannot be one of its turns. */
function ownSystem(scanner: JsonScanner, bytes: Buffer): ValueRange | undefined {
  const range = findMember(scanner, bytes, SYSTEM)
  return range !== undefined && bytes[range.start] === 0x22 ? range : undefined
}

function identity(bytes: Buffer, key: ValueRange): { key: string; idToken: string } {
  const { bytes: from, start, end } = keyText(bytes, key)
  return { key: Buffer.from(from.subarray(start, end)).toString(), idToken: text(bytes, key) }
}

function hashIdentity(bytes: Buffer, range: ValueRange): { key: string; idToken: string } {
  const key = lineKey(bytes, range.start, range.end)
  return { key, idToken: JSON.stringify(key) }
}

function shapeOf(
  scanner: JsonScanner,
  bytes: Buffer,
  rules: RecordRules,
): { shape: RecordShape; ask: ValueRange } {
  if (rules.promptField !== undefined) {
    const ask = findField(scanner, bytes, rules.promptField)
    if (ask === undefined) {
      throw new RecordError('no-prompt', `the record has no field '${rules.promptField.name}'`)
    }
    return { shape: 'prompt', ask }
  }
  for (const { shape, name } of SHAPES) {
    const ask = findMember(scanner, bytes, name)
    if (ask !== undefined) return { shape, ask }
  }
  throw new RecordError(
    'no-prompt',
    'the record has none of messages, turns, prompt and body: name its text with --prompt-field, ' +
      'or make records with extract-prompts',
  )
}

/** The JSON tokens that are asked, checked as far as the server could not say it better. */
function asksOf(
  scanner: JsonScanner,
  bytes: Buffer,
  shape: RecordShape,
  ask: ValueRange,
): string[] {
  const first = bytes[ask.start]
  if (shape === 'batch') {
    if (first !== 0x7b) throw new RecordError('no-prompt', 'the body of a batch line is no object')
    return [text(bytes, ask)]
  }
  if (shape === 'prompt') {
    if (first !== 0x22 && first !== 0x5b) {
      throw new RecordError('no-prompt', 'the prompt is neither a text nor an array of token ids')
    }
    return [text(bytes, ask)]
  }
  const elements = first === 0x5b ? arrayElements(scanner, bytes, ask) : []
  if (elements.length === 0) {
    throw new RecordError('no-prompt', `${shape} is no array with something in it`)
  }
  if (shape === 'turns') {
    const odd = elements.find((element) => bytes[element.start] !== 0x22)
    if (odd) throw new RecordError('no-prompt', 'a turn is no text')
    return elements.map((element) => text(bytes, element))
  }
  scanner.value(elements.at(-1)!.start)
  if (stringAt(bytes, findMember(scanner, bytes, ROLE)) === 'assistant') {
    throw new RecordError('bad-messages', 'the messages end with the assistant: nothing is asked')
  }
  return [text(bytes, ask)]
}

/** The elements of the array in `range`. */
function arrayElements(scanner: JsonScanner, bytes: Buffer, range: ValueRange): ValueRange[] {
  const elements: ValueRange[] = []
  let at = skipBlank(bytes, range.start + 1)
  while (bytes[at] !== 0x5d) {
    const end = scanner.value(at)
    elements.push({ start: at, end })
    at = skipBlank(bytes, end)
    if (bytes[at] === 0x2c) at = skipBlank(bytes, at + 1)
  }
  return elements
}

/** `/v1/chat/completions` of a batch line as `/chat/completions`: the `/v1` stands for --url. */
function batchPath(scanner: JsonScanner, bytes: Buffer): string {
  const method = findMember(scanner, bytes, METHOD)
  if (method !== undefined && stringAt(bytes, method)?.toUpperCase() !== 'POST') {
    throw new RecordError('bad-batch-line', 'the method of a batch line is not POST')
  }
  const url = stringAt(bytes, findMember(scanner, bytes, URL_NAME))
  if (url === undefined || !/^\/[\w./-]*$/.test(url) || url.includes('..')) {
    throw new RecordError(
      'bad-batch-line',
      'the url of a batch line is no path such as /v1/chat/completions',
    )
  }
  return url.replace(/^\/v1(?=\/)/, '')
}

/** The members but those whose values are given, as the text of a JSON object. */
function otherMembers(
  scanner: JsonScanner,
  bytes: Buffer,
  taken: readonly (ValueRange | undefined)[],
): string {
  const { members, memberCount } = scanner
  const parts: string[] = []
  for (let index = 0; index < memberCount; index++) {
    const at = index * MEMBER_STRIDE
    const start = members[at + 2]!
    if (taken.some((range) => range?.start === start)) continue
    const key = bytes.toString('utf8', members[at]!, members[at + 1]!)
    parts.push(`${key}:${bytes.toString('utf8', start, members[at + 3]!)}`)
  }
  return `{${parts.join(',')}}`
}

function sentMembers(
  scanner: JsonScanner,
  bytes: Buffer,
  names: readonly Buffer[],
): Map<string, string> {
  const sent = new Map<string, string>()
  for (const name of names) {
    const value = findMember(scanner, bytes, name)
    if (value !== undefined) sent.set(name.toString(), text(bytes, value))
  }
  return sent
}

function text(bytes: Buffer, range: ValueRange): string {
  return bytes.toString('utf8', range.start, range.end)
}

function skipBlank(bytes: Buffer, start: number): number {
  let at = start
  while (bytes[at] === 0x20 || bytes[at] === 0x09 || bytes[at] === 0x0d) at++
  return at
}
