import type { ValueRange } from './field.ts'
import { JsonScanner, MEMBER_STRIDE } from './json-scan.ts'
import { MemberFinder } from './member-finder.ts'
import { RowProblem } from './row-problem.ts'

/** Who speaks, in the words of the OpenAI API. */
export type Role = 'system' | 'user' | 'assistant' | 'tool'

/** One turn of a conversation, as byte ranges. */
export interface Turn extends ValueRange {
  role: Role
  /** Undefined where it is missing or null. */
  content: ValueRange | undefined
  /** The turn is a message of the OpenAI API as it stands, and can be sent byte for byte. */
  sendable: boolean
  /** The keys and values of other members that servers know, in its order. */
  others: ValueRange[]
}

const NO_OTHERS: ValueRange[] = []

/** The spellings of roles: OpenAI's, ShareGPT's, and those of the sites that ShareGPT collected. */
const ROLES = new Map<string, Role>([
  ['system', 'system'],
  ['developer', 'system'],
  ['user', 'user'],
  ['human', 'user'],
  ['assistant', 'assistant'],
  ['gpt', 'assistant'],
  ['chatgpt', 'assistant'],
  ['bing', 'assistant'],
  ['bard', 'assistant'],
  ['model', 'assistant'],
  ['tool', 'tool'],
  ['function', 'tool'],
])

/** Roles that the API takes as they are spelt. */
const API_ROLES = new Set(['system', 'developer', 'user', 'assistant', 'tool', 'function'])

/** Where a turn says who speaks and what; the first one of each pair counts. */
const ROLE = 0
const FROM = 1
const CONTENT = 2
const VALUE = 3
/** The first of the other members that servers know: those a data set adds itself are not sent. */
const OTHER = 4

const MEMBERS = [
  'role',
  'from',
  'content',
  'value',
  'name',
  'tool_calls',
  'tool_call_id',
  'function_call',
  'refusal',
  'reasoning_content',
  'reasoning',
] as const

/**
 * Reads the turns of a conversation one by one, so that the first turn of a long one costs little.
 * ShareGPT's `from` and `value`, OpenAI's `role` and `content`, or plain texts that alternate.
 */
export class TurnReader {
  #scanner = new JsonScanner()
  #finder = new MemberFinder(MEMBERS)
  #bytes: Buffer = Buffer.alloc(0)
  #at = 0
  #index = 0

  /** Begins with the array in `range`, which the one scanner has found to be JSON. */
  begin(bytes: Buffer, range: ValueRange): void {
    this.#scanner.use(bytes)
    this.#bytes = bytes
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
    const end = this.#scanner.value(start)
    this.#at = skipBlank(bytes, end)
    if (bytes[this.#at] === 0x2c) this.#at = skipBlank(bytes, this.#at + 1)
    const index = this.#index++
    if (bytes[start] === 0x22) {
      const role = index % 2 === 0 ? 'user' : 'assistant'
      return { start, end, role, content: { start, end }, sendable: false, others: NO_OTHERS }
    }
    if (bytes[start] !== 0x7b) throw new RowProblem('bad-turn', `turn ${index + 1} is no object`)
    return this.#turn(start, end)
  }

  #turn(start: number, end: number): Turn {
    const bytes = this.#bytes
    const scanner = this.#scanner
    const finder = this.#finder
    finder.look(scanner, bytes)
    const role = finder.value(scanner, ROLE) ?? finder.value(scanner, FROM)
    const spelt = role && bytes[role.start] === 0x22 ? wordAt(bytes, role) : undefined
    if (spelt === undefined) throw new RowProblem('bad-turn', `turn ${this.#index} has no role`)
    const known = ROLES.get(spelt) ?? ROLES.get(spelt.toLowerCase())
    if (known === undefined) {
      const shown = JSON.stringify(spelt.slice(0, 40))
      throw new RowProblem('unknown-role', `turn ${this.#index} has the role ${shown}`)
    }
    const own = finder.value(scanner, CONTENT)
    const content = own ?? finder.value(scanner, VALUE)
    const { found } = finder
    const ofServers = finder.others === 0 && found[FROM]! < 0 && found[VALUE]! < 0
    return {
      start,
      end,
      role: known,
      content: content && bytes[content.start] !== 0x6e ? content : undefined,
      sendable: ofServers && API_ROLES.has(spelt),
      others: ofServers ? NO_OTHERS : this.#others(),
    }
  }

  #others(): ValueRange[] {
    const { members } = this.#scanner
    const others: ValueRange[] = []
    for (let wanted = OTHER; wanted < MEMBERS.length; wanted++) {
      const at = this.#finder.found[wanted]! * MEMBER_STRIDE
      if (at >= 0) others.push({ start: members[at]!, end: members[at + 3]! })
    }
    return others
  }
}

/** Whether a content is text or parts of which one holds something. */
export function isEmptyContent(bytes: Buffer, content: ValueRange | undefined): boolean {
  if (content === undefined) return true
  const { start } = content
  if (bytes[start] === 0x5b) return bytes[skipBlank(bytes, start + 1)] === 0x5d
  if (bytes[start] !== 0x22) return false
  const first = bytes[start + 1]!
  // Most texts begin with a letter; white space of Unicode begins with one of a few bytes.
  if (first > 0x22 && first !== 0x5c && first < 0xc2) return false
  return tokenText(bytes, content).trim() === ''
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

/** A short text, such as a role. */
function wordAt(bytes: Buffer, range: ValueRange): string {
  const word = bytes.toString('latin1', range.start + 1, range.end - 1)
  return word.includes('\\') ? tokenText(bytes, range) : word
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
