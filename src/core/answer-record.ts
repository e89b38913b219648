import { isCompleted } from './completed.ts'
import { type Turn, TurnReader, textTurn } from './conversation.ts'
import { findMember, isToken, type ValueRange } from './field.ts'
import type { JsonScanner } from './json-scan.ts'
import { KEY_FIELDS, scalarKey } from './key.ts'
import { MemberFinder } from './member-finder.ts'

const MEMBERS = [
  'conversations',
  'messages',
  'prompt',
  'text',
  'response',
  'finish_reason',
  'model',
  'usage',
  'prompt_token_ids',
  'token_ids',
  'status',
  'error',
  'turns',
] as const
type Member = (typeof MEMBERS)[number]
/** The fields of the default rule of keys are found in the same pass, from this place on. */
const FINDER_NAMES = [...MEMBERS, ...KEY_FIELDS] as const
const KEYS = MEMBERS.length
const PLACES = Object.fromEntries(MEMBERS.map((name, place) => [name, place])) as Record<
  Member,
  number
>
const SUCCESS = Buffer.from('"success"')
const BODY = Buffer.from('body')
const CHOICES = Buffer.from('choices')
const MESSAGE = Buffer.from('message')
const FINISH_REASON = Buffer.from('finish_reason')

/** A record of answers, as byte ranges of its line. */
export interface AnswerRecord extends ValueRange {
  /** The token that names it. */
  id: ValueRange | undefined
  /** The whole conversation, the answer last. */
  turns: Turn[]
  /** The line is of OpenAI's batch form: it holds the answer without what was asked. */
  isBatch: boolean
  /** The token of why the answer ended. */
  finishReason: ValueRange | undefined
  /** What fanout-complete says of each turn, of several; why it ended among it. */
  provenance: ValueRange | undefined
  model: ValueRange | undefined
  usage: ValueRange | undefined
  promptTokenIds: ValueRange | undefined
  tokenIds: ValueRange | undefined
}

/** Reads what fanout-complete writes, batch output lines, and conversations of other tools. */
export class AnswerReader {
  #finder = new MemberFinder(FINDER_NAMES)
  #turns = new TurnReader()

  /**
   * Reads the record that the scanner has just read from `range`, an object.
   *
   * @returns `failed` for the trace of a failure, `no-conversation` for something else
   * @throws RowProblem where a turn of the conversation is none
   */
  read(
    scanner: JsonScanner,
    bytes: Buffer,
    range: ValueRange,
  ): AnswerRecord | 'failed' | 'no-conversation' {
    const finder = this.#finder
    finder.look(scanner, bytes)
    const record: AnswerRecord = {
      start: range.start,
      end: range.end,
      id: this.#key(bytes),
      turns: [],
      isBatch: false,
      finishReason: finder.value(PLACES.finish_reason),
      provenance: finder.value(PLACES.turns),
      model: finder.value(PLACES.model),
      usage: finder.value(PLACES.usage),
      promptTokenIds: finder.value(PLACES.prompt_token_ids),
      tokenIds: finder.value(PLACES.token_ids),
    }
    if (!this.#isSuccess(bytes) && !isCompleted(scanner, bytes)) return 'failed'
    const conversation = finder.value(PLACES.conversations) ?? finder.value(PLACES.messages)
    const response = object(bytes, finder.value(PLACES.response))
    const prompt = finder.value(PLACES.prompt)
    const text = finder.value(PLACES.text)
    if (conversation !== undefined && bytes[conversation.start] === 0x5b) {
      record.turns = this.#read(scanner, bytes, conversation)
    } else if (response !== undefined) {
      record.isBatch = true
      this.#readBatch(scanner, bytes, response, record)
    } else if (prompt !== undefined && text !== undefined && bytes[text.start] === 0x22) {
      record.turns = [textTurn(prompt, 'user'), textTurn(text, 'assistant')]
    } else return 'no-conversation'
    return record
  }

  /** The usual record of a success, for which the rule of what is completed need not be asked. */
  #isSuccess(bytes: Buffer): boolean {
    const finder = this.#finder
    if (finder.has(PLACES.error) || finder.has(PLACES.response)) return false
    const status = finder.value(PLACES.status)
    return status !== undefined && isToken(bytes, status, SUCCESS)
  }

  #key(bytes: Buffer): ValueRange | undefined {
    for (let place = KEYS; place < FINDER_NAMES.length; place++) {
      if (!this.#finder.has(place)) continue
      const value = scalarKey(bytes, this.#finder.value(place))
      if (value !== undefined) return value
    }
    return undefined
  }

  #read(scanner: JsonScanner, bytes: Buffer, range: ValueRange): Turn[] {
    const turns: Turn[] = []
    this.#turns.begin(bytes, range, scanner.longStrings)
    for (let turn = this.#turns.next(); turn !== undefined; turn = this.#turns.next()) {
      turns.push(turn)
    }
    return turns
  }

  /** The first choice of a batch line's body. */
  #readBatch(
    scanner: JsonScanner,
    bytes: Buffer,
    response: ValueRange,
    record: AnswerRecord,
  ): void {
    scanner.value(response.start)
    const body = object(bytes, findMember(scanner, bytes, BODY))
    if (body === undefined) return
    scanner.value(body.start)
    const choices = findMember(scanner, bytes, CHOICES)
    if (choices === undefined || bytes[choices.start] !== 0x5b) return
    const choice = { start: choices.start + 1, end: choices.end }
    while (bytes[choice.start]! <= 0x20) choice.start++
    if (object(bytes, choice) === undefined) return
    scanner.value(choice.start)
    record.finishReason = findMember(scanner, bytes, FINISH_REASON)
    const message = object(bytes, findMember(scanner, bytes, MESSAGE))
    // A message alone reads like the only element of an array.
    if (message !== undefined) record.turns = [this.#one(bytes, message)]
  }

  #one(bytes: Buffer, message: ValueRange): Turn {
    this.#turns.begin(bytes, { start: message.start - 1, end: message.end })
    return this.#turns.next()!
  }
}

function object(bytes: Buffer, value: ValueRange | undefined): ValueRange | undefined {
  return value !== undefined && bytes[value.start] === 0x7b ? value : undefined
}
