import { isToken, type ValueRange } from './field.ts'
import type { JsonScanner } from './json-scan.ts'
import { MemberFinder } from './member-finder.ts'
import { skipValue } from './skip-value.ts'

const NAMES = [
  'response',
  'choices',
  'conversations',
  'text',
  'finish_reason',
  'status',
  'error',
  'turns',
] as const
const [RESPONSE, CHOICES, CONVERSATIONS, TEXT, FINISH_REASON, STATUS, ERROR, TURNS] = NAMES.keys()
const [CONTENT, VALUE] = [0, 1]

const QUOTE = 0x22
const BACKSLASH = 0x5c
const COMMA = 0x2c
const OPEN_BRACE = 0x7b
const OPEN_BRACKET = 0x5b
const CLOSE_BRACKET = 0x5d
const NULL = 0x6e
const SUCCESS = Buffer.from('"success"')
const CUT = ['"length"', '"content_filter"'].map((token) => Buffer.from(token))

/**
 * Tells of most records in fanout-complete's own form that they are answers with which nothing is
 * wrong, at the cost of passing over their messages; completed.ts has the rule, for all forms.
 */
export class OwnAnswer {
  #record = new MemberFinder(NAMES)
  #message = new MemberFinder(['content', 'value'])

  /**
   * Looks at the record that the scanner has just read.
   *
   * @returns 'whole' where it surely is completed and falls short of nothing, 'foreign' for forms
   *   of others
   */
  look(scanner: JsonScanner, bytes: Buffer): 'whole' | 'doubtful' | 'foreign' {
    this.#record.look(scanner, bytes)
    if (this.#record.has(RESPONSE!) || this.#record.has(CHOICES!)) return 'foreign'
    return this.#isPlainlyWhole(scanner, bytes) ? 'whole' : 'doubtful'
  }

  #isPlainlyWhole(scanner: JsonScanner, bytes: Buffer): boolean {
    const record = this.#record
    const status = record.value(STATUS!)
    if (status !== undefined && !isToken(bytes, status, SUCCESS)) return false
    // Each turn may have been cut.
    if (record.has(ERROR!) || record.has(TURNS!)) return false
    const finish = record.value(FINISH_REASON!)
    if (finish !== undefined && mayBeCut(bytes, finish)) return false
    const messages = record.value(CONVERSATIONS!)
    if (messages !== undefined) return this.#hasContent(bytes, messages, scanner)
    const text = record.value(TEXT!)
    return text === undefined || isFilled(bytes, text)
  }

  /** Whether the last message surely has content. */
  #hasContent(
    bytes: Buffer,
    { start }: ValueRange,
    { longStrings, suspect }: JsonScanner,
  ): boolean {
    if (bytes[start] !== OPEN_BRACKET) return false
    const message = this.#message
    let isObject = false
    for (let at = start + 1; ; ) {
      while (bytes[at]! <= 0x20 || bytes[at] === COMMA) at++
      if (bytes[at] === CLOSE_BRACKET) break
      isObject = bytes[at] === OPEN_BRACE
      at = isObject
        ? message.read(bytes, at, longStrings, suspect)
        : skipValue(bytes, at, longStrings)
    }
    if (!isObject) return false
    const content = message.value(CONTENT!)
    if (content !== undefined && bytes[content.start] !== NULL) return isFilled(bytes, content)
    const value = message.value(VALUE!)
    return value !== undefined && isFilled(bytes, value)
  }
}

function mayBeCut(bytes: Buffer, reason: ValueRange): boolean {
  if (bytes[reason.start] !== QUOTE) return false
  for (let at = reason.start; at < reason.end; at++) if (bytes[at] === BACKSLASH) return true
  return CUT.some((token) => isToken(bytes, reason, token))
}

/** A string with something in it. */
function isFilled(bytes: Buffer, { start, end }: ValueRange): boolean {
  return bytes[start] === QUOTE && end - start > 2
}
