import { type Field, findField, findMember, stringAt, type ValueRange } from './field.ts'
import type { JsonScanner } from './json-scan.ts'
import { RecordError } from './record-error.ts'
import type { RecordText } from './record-text.ts'

/** How a record asks: the member that decided it. */
export type RecordShape = 'messages' | 'turns' | 'prompt' | 'batch'

const SHAPES: readonly { shape: RecordShape; name: Buffer }[] = [
  { shape: 'messages', name: Buffer.from('messages') },
  { shape: 'turns', name: Buffer.from('turns') },
  { shape: 'prompt', name: Buffer.from('prompt') },
  { shape: 'batch', name: Buffer.from('body') },
]
const URL_NAME = Buffer.from('url')
const METHOD = Buffer.from('method')
const ROLE = Buffer.from('role')
const SYSTEM = Buffer.from('system')
const STREAM = Buffer.from('stream')
/** The first bytes of `true` and `null`. */
const TRUE = 0x74
const NULL = 0x6e

/**
 * What a record asks, of the object that the scanner has just read.
 *
 * @param promptField the only field that counts (`--prompt-field`)
 * @throws RecordError where it asks nothing
 */
export function shapeOf(
  scanner: JsonScanner,
  bytes: Buffer,
  promptField: Field | undefined,
): { shape: RecordShape; ask: ValueRange } {
  if (promptField !== undefined) {
    const ask = findField(scanner, bytes, promptField)
    if (ask === undefined) {
      throw new RecordError('no-prompt', `the record has no field '${promptField.name}'`)
    }
    return { shape: 'prompt', ask }
  }
  for (const { shape, name } of SHAPES) {
    const ask = findMember(scanner, bytes, name)
    // A table's row has all columns: those that are null say nothing.
    if (ask !== undefined && bytes[ask.start] !== NULL) return { shape, ask }
  }
  throw new RecordError(
    'no-prompt',
    'the record has none of messages, turns, prompt and body: name its text with --prompt-field, ' +
      'or make records with extract-prompts',
  )
}

/**
 * The JSON tokens that are asked, checked as far as the server could not say it better.
 *
 * @throws RecordError where they cannot be asked
 */
export function asksOf(
  scanner: JsonScanner,
  bytes: Buffer,
  text: RecordText,
  shape: RecordShape,
  ask: ValueRange,
): string[] {
  const first = bytes[ask.start]
  if (shape === 'batch') {
    if (first !== 0x7b) throw new RecordError('no-prompt', 'the body of a batch line is no object')
    scanner.value(ask.start)
    const stream = findMember(scanner, bytes, STREAM)
    if (stream !== undefined && bytes[stream.start] === TRUE) {
      throw new RecordError(
        'bad-batch-line',
        'a batch line is never streamed: take "stream":true out of its body',
      )
    }
    return [text.of(ask)]
  }
  if (shape === 'prompt') {
    if (first !== 0x22 && first !== 0x5b) {
      throw new RecordError('no-prompt', 'the prompt is neither a text nor an array of token ids')
    }
    return [text.of(ask)]
  }
  const elements = first === 0x5b ? arrayElements(scanner, bytes, ask) : []
  if (elements.length === 0) {
    throw new RecordError('no-prompt', `${shape} is no array with something in it`)
  }
  if (shape === 'turns') {
    const odd = elements.find((element) => bytes[element.start] !== 0x22)
    if (odd) throw new RecordError('no-prompt', 'a turn is no text')
    return elements.map((element) => text.of(element))
  }
  scanner.value(elements.at(-1)!.start)
  if (stringAt(bytes, findMember(scanner, bytes, ROLE)) === 'assistant') {
    throw new RecordError('bad-messages', 'the messages end with the assistant: nothing is asked')
  }
  return [text.of(ask)]
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

/**
 * `/v1/chat/completions` of a batch line as `/chat/completions`: the `/v1` stands for --url.
 *
 * @throws RecordError where the line names no such path, or another method than POST
 */
export function batchPath(scanner: JsonScanner, bytes: Buffer): string {
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

/** As extract-prompts writes it: a conversation's system message cannot be one of its turns. */
export function ownSystem(scanner: JsonScanner, bytes: Buffer): ValueRange | undefined {
  const range = findMember(scanner, bytes, SYSTEM)
  return range !== undefined && bytes[range.start] === 0x22 ? range : undefined
}

function skipBlank(bytes: Buffer, start: number): number {
  let at = start
  while (bytes[at] === 0x20 || bytes[at] === 0x09 || bytes[at] === 0x0d) at++
  return at
}
