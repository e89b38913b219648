import type { ByteBuilder } from './byte-builder.ts'
import { contentLength, isEmptyContent, type Turn, TurnReader } from './conversation.ts'
import type { ValueRange } from './field.ts'
import type { LongStrings } from './long-strings.ts'
import type { Role } from './plain-turn.ts'
import type { Prompt } from './prompt-shape.ts'
import { RowProblem } from './row-problem.ts'

/** What is asked of a conversation: its first user turn, every user turn anew, or the last one. */
export const TURN_MODES = ['first', 'all', 'keep'] as const
export type TurnMode = (typeof TURN_MODES)[number]

const MESSAGES = Buffer.from('"messages":[')
const USER_MESSAGE = Buffer.from('"messages":[{"role":"user","content":')
const TURNS = Buffer.from('"turns":[')
const PROMPT = Buffer.from('"prompt":')
const SYSTEM = Buffer.from('"system":')
const PARAGRAPH = Buffer.from('\\n\\n')
const ROLE_HEADS: Record<Role, Buffer> = {
  system: Buffer.from('{"role":"system","content":'),
  user: Buffer.from('{"role":"user","content":'),
  assistant: Buffer.from('{"role":"assistant","content":'),
  tool: Buffer.from('{"role":"tool","content":'),
}
const NULL = Buffer.from('null')
const COMMA_BYTES = Buffer.from(',')
const COMMA = 0x2c
const QUOTE = 0x22
const CLOSE_BRACE = 0x7d
const CLOSE_BRACKET = 0x5d

/**
 * Writes what a row asks in the form that fanout-complete reads: a text as `prompt`, a conversation
 * as `messages`, user turns to be asked one after the other as `turns`. Contents are copied, and
 * whole messages where the API takes them as they stand.
 */
export class PromptWriter {
  #mode: TurnMode
  #reader = new TurnReader()
  #out: ByteBuilder
  #bytes: Buffer = Buffer.alloc(0)
  #longStrings: LongStrings | undefined
  /** Contents that were written for the last row; undefined where nobody asks for their length. */
  #contents: ValueRange[] | undefined

  /** @param measures whether `isLongerThan` will be asked */
  constructor(mode: TurnMode, out: ByteBuilder, measures: boolean) {
    this.#mode = mode
    this.#out = out
    this.#contents = measures ? [] : undefined
  }

  /**
   * Appends the members that ask, without the comma before them.
   *
   * @param longStrings the scanner's, of the value that it has read last
   * @throws RowProblem where nothing can be asked; what was appended until then is to be taken back
   */
  write(bytes: Buffer, prompt: Prompt, longStrings?: LongStrings): void {
    this.#bytes = bytes
    this.#longStrings = longStrings
    if (this.#contents !== undefined) this.#contents = []
    const { shape, value, system } = prompt
    if (shape === 'tokens') this.#member(PROMPT, value)
    else if (shape === 'conversation') this.#conversation(value, system)
    else if (shape === 'turns') this.#turns(value, system)
    else this.#text(prompt)
  }

  /** Whether the texts of the last row have more characters than this in all. */
  isLongerThan(characters: number): boolean {
    // A character has at least one byte: most rows need no decoding.
    const contents = this.#contents ?? []
    const size = contents.reduce((sum, { start, end }) => sum + end - start, 0)
    if (size <= characters) return false
    const lengths = contents.map((content) => contentLength(this.#bytes, content))
    return lengths.reduce((sum, length) => sum + length, 0) > characters
  }

  #text({ shape, value, input, system }: Prompt): void {
    this.#asked(value)
    if (system !== undefined) this.#openMessages(system)
    const out = this.#out
    out.append(system === undefined ? PROMPT : ROLE_HEADS.user)
    if (shape === 'alpaca') {
      this.#contents?.push(input!)
      out.append(this.#bytes, value.start, value.end - 1)
      out.append(PARAGRAPH)
      out.append(this.#bytes, input!.start + 1, input!.end)
    } else out.append(this.#bytes, value.start, value.end)
    if (system !== undefined) {
      out.byte(CLOSE_BRACE)
      out.byte(CLOSE_BRACKET)
    }
  }

  /** User turns without answers. */
  #turns(range: ValueRange, system: ValueRange | undefined): void {
    this.#reader.begin(this.#bytes, range, this.#longStrings)
    const users: Turn[] = []
    for (let turn = this.#reader.next(); turn !== undefined; turn = this.#reader.next()) {
      users.push(turn)
      if (this.#mode === 'first') break
    }
    if (
      users.some(({ content }) => content === undefined || this.#bytes[content.start] !== QUOTE)
    ) {
      throw new RowProblem('not-text')
    }
    if (this.#mode !== 'first') return this.#askAll(users, system)
    this.#text({ shape: 'text', value: users[0]!.content!, input: undefined, system })
  }

  #conversation(range: ValueRange, beside: ValueRange | undefined): void {
    this.#reader.begin(this.#bytes, range, this.#longStrings)
    const opening = this.#reader.next()
    // What most conversations begin with is taken without lists.
    if (this.#mode === 'first' && opening?.role === 'user') return this.#single(opening, beside)
    const { turns, users, systems } = this.#read(opening)
    if (this.#mode === 'all') {
      if (systems > 1) throw new RowProblem('two-systems')
      const own = turns.find(({ role }) => role === 'system')
      return this.#askAll(users, own?.content ?? beside)
    }
    const last = users[users.length - 1]!
    if (isEmptyContent(this.#bytes, last.content)) throw new RowProblem('empty-prompt')
    this.#openMessages(turns[0]!.role === 'system' ? undefined : beside)
    for (let index = 0; turns[index] !== last; index++) {
      this.#message(turns[index]!)
      this.#out.byte(COMMA)
    }
    this.#message(last)
    this.#out.byte(CLOSE_BRACKET)
  }

  /** The turns that matter: with `first` those up to the first user turn, which spares the rest. */
  #read(opening: Turn | undefined): { turns: Turn[]; users: Turn[]; systems: number } {
    const turns: Turn[] = []
    const users: Turn[] = []
    let systems = 0
    for (let turn = opening; turn !== undefined; turn = this.#reader.next()) {
      turns.push(turn)
      if (turn.role === 'user') {
        users.push(turn)
        if (this.#mode === 'first') break
      } else if (turn.role === 'system') systems++
      else if (users.length === 0) throw new RowProblem('assistant-first')
    }
    if (turns.length === 0) throw new RowProblem('no-turns')
    if (users.length === 0) throw new RowProblem('no-user')
    return { turns, users, systems }
  }

  /** One user turn. */
  #single(turn: Turn, system: ValueRange | undefined): void {
    if (isEmptyContent(this.#bytes, turn.content)) throw new RowProblem('empty-prompt')
    const out = this.#out
    if (system === undefined && turn.content !== undefined && isBare(turn)) {
      this.#contents?.push(turn.content)
      this.#member(USER_MESSAGE, turn.content)
      out.byte(CLOSE_BRACE)
    } else {
      this.#openMessages(system)
      this.#message(turn)
    }
    out.byte(CLOSE_BRACKET)
  }

  /** Every user turn, the system message beside them. */
  #askAll(users: readonly Turn[], system: ValueRange | undefined): void {
    const out = this.#out
    if (system !== undefined) {
      this.#contents?.push(system)
      this.#member(SYSTEM, system)
      out.byte(COMMA)
    }
    let head = TURNS
    for (const { content } of users) {
      this.#asked(content)
      if (this.#bytes[content!.start] !== QUOTE) throw new RowProblem('not-text')
      out.append(head)
      head = COMMA_BYTES
      out.append(this.#bytes, content!.start, content!.end)
    }
    out.byte(CLOSE_BRACKET)
  }

  #openMessages(system: ValueRange | undefined): void {
    const out = this.#out
    out.append(MESSAGES)
    if (system === undefined) return
    this.#contents?.push(system)
    this.#member(ROLE_HEADS.system, system)
    out.byte(CLOSE_BRACE)
    out.byte(COMMA)
  }

  #message(turn: Turn): void {
    const out = this.#out
    const { content } = turn
    if (content !== undefined) this.#contents?.push(content)
    if (turn.sendable) {
      out.append(this.#bytes, turn.start, turn.end)
      return
    }
    out.append(ROLE_HEADS[turn.role])
    if (content === undefined) out.append(NULL)
    else out.append(this.#bytes, content.start, content.end)
    for (const { start, end } of turn.others) {
      out.byte(COMMA)
      out.append(this.#bytes, start, end)
    }
    out.byte(CLOSE_BRACE)
  }

  #member(head: Buffer, value: ValueRange): void {
    this.#out.append(head)
    this.#out.append(this.#bytes, value.start, value.end)
  }

  /** Counts a content that is asked. */
  #asked(content: ValueRange | undefined): void {
    if (isEmptyContent(this.#bytes, content)) throw new RowProblem('empty-prompt')
    this.#contents?.push(content!)
  }
}

/** A turn of which only the role and the content go on, in the API's own spelling. */
function isBare({ sendable, others }: Turn): boolean {
  return !sendable && others.length === 0
}
