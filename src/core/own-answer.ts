import { isToken, type ValueRange } from './field.ts'
import type { JsonScanner } from './json-scan.ts'
import type { LongStrings } from './long-strings.ts'
import { MemberFinder } from './member-finder.ts'
import { skipValue } from './skip-value.ts'

const [RESPONSE, CHOICES, CONVERSATIONS, TEXT, FINISH_REASON] = [0, 1, 2, 3, 4]
const NAMES = ['response', 'choices', 'conversations', 'text', 'finish_reason']
const [CONTENT, VALUE] = [0, 1]

const QUOTE = 0x22
const BACKSLASH = 0x5c
const COMMA = 0x2c
const OPEN_BRACE = 0x7b
const OPEN_BRACKET = 0x5b
const CLOSE_BRACKET = 0x5d
const NULL = 0x6e
const CUT = ['"length"', '"content_filter"'].map((token) => Buffer.from(token))

/**
 * Tells of most answers in fanout-complete's own form that nothing is wrong with them, at the cost of
 * passing over their messages; completed.ts has the rule, for all forms.
 */
export class OwnAnswer {
  #record = new MemberFinder(NAMES)
  #message = new MemberFinder(['content', 'value'])

  /**
   * Looks at the record that the scanner has just read.
   *
   * @returns 'whole' where it surely falls short of nothing, 'foreign' for other forms
   */
  look(scanner: JsonScanner, bytes: Buffer): 'whole' | 'doubtful' | 'foreign' {
    this.#record.look(scanner, bytes)
    if (this.#record.has(RESPONSE!) || this.#record.has(CHOICES!)) return 'foreign'
    return this.#isPlainlyWhole(scanner, bytes) ? 'whole' : 'doubtful'
  }

  #isPlainlyWhole({ longStrings }: JsonScanner, bytes: Buffer): boolean {
    const record = this.#record
    const finish = record.value(FINISH_REASON!)
    if (finish !== undefined && mayBeCut(bytes, finish)) return false
    const messages = record.value(CONVERSATIONS!)
    if (messages !== undefined) return this.#hasContent(bytes, messages, longStrings)
    const text = record.value(TEXT!)
    return text === undefined || isFilled(bytes, text)
  }

  /** Whether the last message surely has content. */
  #hasContent(bytes: Buffer, { start }: ValueRange, longStrings: LongStrings): boolean {
    if (bytes[start] !== OPEN_BRACKET) return false
    const message = this.#message
    let isObject = false
    for (let at = start + 1; ; ) {
      while (bytes[at]! <= 0x20 || bytes[at] === COMMA) at++
      if (bytes[at] === CLOSE_BRACKET) break
      isObject = bytes[at] === OPEN_BRACE
      at = isObject ? message.read(bytes, at, longStrings) : skipValue(bytes, at, longStrings)
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
  if (CUT.some((token) => isToken(bytes, reason, token))) return true
  return bytes.subarray(reason.start, reason.end).includes(BACKSLASH)
}

/** A string with something in it. */
function isFilled(bytes: Buffer, { start, end }: ValueRange): boolean {
  return bytes[start] === QUOTE && end - start > 2
}
