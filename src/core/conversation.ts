import type { ValueRange } from './field.ts'
import type { LongStrings } from './long-strings.ts'
import { MemberFinder } from './member-finder.ts'
import { PlainTurns, type Role } from './plain-turn.ts'
import { RowProblem } from './row-problem.ts'
import { skipString } from './skip-value.ts'
import { WordTable } from './word-table.ts'

/** One turn of a conversation, as byte ranges. */
export interface Turn extends ValueRange {
  role: Role
  /** Undefined where it is missing or null. */
  content: ValueRange | undefined
  /** The turn is a message of the OpenAI API as it stands, and can be sent byte for byte. */
  sendable: boolean
  /** The keys and values of other members that servers know, reasoning not among them. */
  others: ValueRange[]
  /** The first text of reasoning that is not empty, under whichever name. */
  reasoning: ValueRange | undefined
  /** The names of {@link REASONING_MEMBERS} that the turn has, as bits from the lowest. */
  reasoningNames: number
  toolCalls: ValueRange | undefined
}

/** How reasoning is called: fanout-complete and SGLang, vLLM now, DeepSpec. */
export const REASONING_MEMBERS = ['reasoning_content', 'reasoning', 'thinking'] as const

const NO_OTHERS: ValueRange[] = []

/** The spellings of roles: OpenAI's, which the API takes as they are, then ShareGPT's. */
const SPELLINGS: readonly (readonly [spelling: string, role: Role])[] = [
  ['system', 'system'],
  ['developer', 'system'],
  ['user', 'user'],
  ['assistant', 'assistant'],
  ['tool', 'tool'],
  ['function', 'tool'],
  ['human', 'user'],
  ['gpt', 'assistant'],
  ['chatgpt', 'assistant'],
  ['bing', 'assistant'],
  ['bard', 'assistant'],
  ['model', 'assistant'],
]
const API_SPELLINGS = 6

/** The members of a turn that are looked for. */
const MEMBERS = [
  'role',
  'from',
  'content',
  'value',
  'tool_calls',
  'tool_call_id',
  'name',
  'function_call',
  'refusal',
  ...REASONING_MEMBERS,
] as const
const place = (name: (typeof MEMBERS)[number]): number => MEMBERS.indexOf(name)
const ROLE = place('role')
const FROM = place('from')
const CONTENT = place('content')
const VALUE = place('value')
const TOOL_CALLS = place('tool_calls')
const REASONING = place(REASONING_MEMBERS[0])
const THINKING = place('thinking')
/** From here to the reasoning stand other members that servers know; a data set's own are not sent. */
const OTHER = TOOL_CALLS

/**
 * Reads the turns of a conversation one by one, so that the first turn of a long one costs little.
 * ShareGPT's `from` and `value`, OpenAI's `role` and `content`, or plain texts that alternate.
 */
export class TurnReader {
  #finder = new MemberFinder(MEMBERS)
  #plain = new PlainTurns()
  #roles = new WordTable(SPELLINGS.map(([spelling]) => spelling))
  #bytes: Buffer = Buffer.alloc(0)
  #longStrings: LongStrings | undefined
  #at = 0
  #index = 0

  /**
   * Begins with the array in `range`, which a scanner has found to be JSON.
   *
   * @param longStrings that scanner's, of the value that it has read last
   */
  begin(bytes: Buffer, range: ValueRange, longStrings?: LongStrings): void {
    this.#bytes = bytes
    this.#longStrings = longStrings
    this.#at = skipBlank(bytes, range.start + 1)
    this.#index = 0
  }

  /**
   * The next turn; undefined behind the last one.
   *
   * @throws RowProblem where it is no turn
   */
  next(): Turn | undefined {
    const bytes = this.#bytes
    const start = this.#at
    if (bytes[start] === 0x5d) return undefined
    const index = this.#index++
    if (bytes[start] === 0x22) {
      const end = skipString(bytes, start, this.#longStrings)
      this.#goOn(end)
      return textTurn({ start, end }, index % 2 === 0 ? 'user' : 'assistant')
    }
    if (bytes[start] !== 0x7b) throw new RowProblem('bad-turn', `turn ${index + 1} is no object`)
    const plain = this.#plain
    if (plain.read(bytes, start, this.#longStrings)) {
      const turn = textTurn({ start: plain.contentStart, end: plain.contentEnd }, plain.role)
      turn.start = start
      turn.end = plain.contentEnd + 1
      turn.sendable = plain.sendable
      this.#goOn(turn.end)
      return turn
    }
    const end = this.#finder.read(bytes, start, this.#longStrings)
    this.#goOn(end)
    return this.#turn(start, end)
  }

  #goOn(end: number): void {
    this.#at = skipBlank(this.#bytes, end)
    if (this.#bytes[this.#at] === 0x2c) this.#at = skipBlank(this.#bytes, this.#at + 1)
  }

  #turn(start: number, end: number): Turn {
    const bytes = this.#bytes
    const finder = this.#finder
    const role = finder.value(ROLE) ?? finder.value(FROM)
    const spelling = role === undefined ? -1 : this.#roles.indexOf(bytes, role.start, role.end)
    if (spelling < 0) throw this.#roleProblem(role)
    const own = finder.value(CONTENT)
    const content = own ?? finder.value(VALUE)
    if (content !== undefined && !isMessageContent(bytes, content)) {
      throw new RowProblem('wrong-type', `turn ${this.#index} has a content that is no text`)
    }
    const ofServers =
      finder.others === 0 && !finder.has(FROM) && !finder.has(VALUE) && !finder.has(THINKING)
    const turn: Turn = {
      start,
      end,
      role: SPELLINGS[spelling]![1],
      content: content && bytes[content.start] !== 0x6e ? content : undefined,
      sendable: ofServers && spelling < API_SPELLINGS,
      others: NO_OTHERS,
      reasoning: undefined,
      reasoningNames: 0,
      toolCalls: undefined,
    }
    // Most turns have a role and a content, and nothing else.
    if (finder.count > 2 || content === undefined) this.#addOthers(turn)
    return turn
  }

  #addOthers(turn: Turn): void {
    turn.others = this.#others()
    turn.toolCalls = this.#finder.value(TOOL_CALLS)
    for (let index = 0; index < REASONING_MEMBERS.length; index++) {
      const value = this.#finder.value(REASONING + index)
      if (value === undefined) continue
      turn.reasoningNames |= 1 << index
      const isText = this.#bytes[value.start] === 0x22 && value.end - value.start > 2
      if (isText) turn.reasoning ??= value
    }
  }

  #roleProblem(role: ValueRange | undefined): RowProblem {
    if (role === undefined || this.#bytes[role.start] !== 0x22) {
      return new RowProblem('bad-turn', `turn ${this.#index} has no role`)
    }
    const shown = tokenText(this.#bytes, role).slice(0, 40)
    return new RowProblem('unknown-role', `turn ${this.#index} has the role '${shown}'`)
  }

  #others(): ValueRange[] {
    const others: ValueRange[] = []
    for (let wanted = OTHER; wanted < REASONING; wanted++) {
      const member = this.#finder.member(wanted)
      if (member !== undefined) others.push(member)
    }
    return others
  }
}

/** A turn that is a text alone. */
export function textTurn(text: ValueRange, role: Role): Turn {
  return {
    start: text.start,
    end: text.end,
    role,
    content: text,
    sendable: false,
    others: NO_OTHERS,
    reasoning: undefined,
    reasoningNames: 0,
    toolCalls: undefined,
  }
}

/** Whether a content is what a message may hold: a text, null, or a list of parts. */
export function isMessageContent(bytes: Buffer, { start }: ValueRange): boolean {
  const first = bytes[start]
  if (first !== 0x5b) return first === 0x22 || first === 0x6e
  const part = bytes[skipBlank(bytes, start + 1)]
  return part === 0x7b || part === 0x22 || part === 0x5d
}

/** Whether a content is missing, or a text of white space, or a list without parts. */
export function isEmptyContent(bytes: Buffer, content: ValueRange | undefined): boolean {
  if (content === undefined) return true
  const { start } = content
  if (bytes[start] === 0x5b) return bytes[skipBlank(bytes, start + 1)] === 0x5d
  if (bytes[start] !== 0x22) return false
  // Most texts begin with something else than white space, and need no decoding.
  if (!mayBeSpace(bytes, start + 1)) return false
  return tokenText(bytes, content).trim() === ''
}

/** Whether white space, escaped or of Unicode, or the end of a string token may begin here. */
function mayBeSpace(bytes: Buffer, at: number): boolean {
  const first = bytes[at]!
  if (first <= 0x22) return first !== 0x21
  const second = bytes[at + 1]!
  if (first === 0x5c) return second !== 0x22 && second !== 0x5c
  // U+2000 to U+200A, U+2028, U+2029, U+202F and U+205F; the quotes beside them begin many texts.
  if (first === 0xe2) return second === 0x81 || (second === 0x80 && !isQuote(bytes[at + 2]!))
  return first === 0xc2 || first === 0xe1 || first === 0xe3 || first === 0xef
}

/** The last byte of U+2010 to U+201F: dashes and quotes. */
function isQuote(third: number): boolean {
  return third >= 0x90 && third <= 0x9f
}

/** The number of characters (code points) of a text token, or of the texts among content parts. */
export function contentLength(bytes: Buffer, content: ValueRange): number {
  if (bytes[content.start] === 0x22) return characters(tokenText(bytes, content))
  const parts: unknown = JSON.parse(bytes.toString('utf8', content.start, content.end))
  if (!Array.isArray(parts)) return 0
  const texts = parts.map((part: { text?: unknown } | null) => part?.text)
  return texts.reduce<number>(
    (sum, text) => sum + (typeof text === 'string' ? characters(text) : 0),
    0,
  )
}

function characters(text: string): number {
  let count = 0
  for (let at = 0; at < text.length; at++) {
    const unit = text.charCodeAt(at)
    if (unit < 0xdc00 || unit > 0xdfff) count++
  }
  return count
}

/** The text of the string token in `range`. */
function tokenText(bytes: Buffer, { start, end }: ValueRange): string {
  return JSON.parse(bytes.toString('utf8', start, end)) as string
}

/** The offset behind white space inside a line. */
export function skipBlank(bytes: Uint8Array, start: number): number {
  let at = start
  while (bytes[at] === 0x20 || bytes[at] === 0x09 || bytes[at] === 0x0d) at++
  return at
}
