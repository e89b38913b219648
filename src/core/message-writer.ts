import type { ByteBuilder } from './byte-builder.ts'
import { REASONING_MEMBERS, type Turn } from './conversation.ts'
import type { Role } from './plain-turn.ts'

/** What becomes of reasoning: a member of its own, nothing, or a part of the content. */
export const REASONING_MODES = ['keep', 'drop', 'inline'] as const
export type ReasoningMode = (typeof REASONING_MODES)[number]

export interface MessageStyle {
  reasoning: ReasoningMode
  /** The member that reasoning is kept in. */
  reasoningName: (typeof REASONING_MEMBERS)[number]
  /** What goes before and behind reasoning that is a part of the content. */
  thinkTags: readonly [open: string, close: string]
}

const COMMA = 0x2c
const QUOTE = 0x22
const CLOSE_BRACE = 0x7d
const NULL = Buffer.from('null')
const ROLES: Record<Role, Buffer> = {
  system: Buffer.from('{"role":"system","content":'),
  user: Buffer.from('{"role":"user","content":'),
  assistant: Buffer.from('{"role":"assistant","content":'),
  tool: Buffer.from('{"role":"tool","content":'),
}

/** Writes messages in a trainer's style; what is in it already passes byte for byte. */
export class MessageWriter {
  #style: MessageStyle
  #nameBit: number
  #reasoningHead: Buffer
  #open: Buffer
  #close: Buffer

  constructor(style: MessageStyle) {
    this.#style = style
    this.#nameBit = 1 << REASONING_MEMBERS.indexOf(style.reasoningName)
    this.#reasoningHead = Buffer.from(`,"${style.reasoningName}":`)
    const [open, close] = style.thinkTags
    this.#open = inside(open)
    this.#close = inside(close)
  }

  /** Appends a turn; with `withReasoning` false its reasoning is dropped whatever the style. */
  write(out: ByteBuilder, bytes: Buffer, turn: Turn, withReasoning = true): void {
    const reasoning = withReasoning && this.#style.reasoning !== 'drop' ? turn.reasoning : undefined
    const inline = reasoning !== undefined && this.#style.reasoning === 'inline'
    if (turn.sendable && !inline) {
      const wanted = reasoning === undefined ? 0 : this.#nameBit
      if (turn.reasoningNames === wanted) {
        out.append(bytes, turn.start, turn.end)
        return
      }
    }
    out.append(ROLES[turn.role])
    if (inline) this.#inline(out, bytes, turn)
    else if (turn.content === undefined) out.append(NULL)
    else out.append(bytes, turn.content.start, turn.content.end)
    if (reasoning !== undefined && !inline) {
      out.append(this.#reasoningHead)
      out.append(bytes, reasoning.start, reasoning.end)
    }
    for (const { start, end } of turn.others) {
      out.byte(COMMA)
      out.append(bytes, start, end)
    }
    out.byte(CLOSE_BRACE)
  }

  /** Appends the content of a turn as a string token. */
  content(out: ByteBuilder, bytes: Buffer, turn: Turn): void {
    if (turn.reasoning !== undefined && this.#style.reasoning === 'inline') {
      this.#inline(out, bytes, turn)
    } else out.append(bytes, turn.content!.start, turn.content!.end)
  }

  #inline(out: ByteBuilder, bytes: Buffer, { content, reasoning }: Turn): void {
    out.byte(QUOTE)
    out.append(this.#open)
    out.append(bytes, reasoning!.start + 1, reasoning!.end - 1)
    out.append(this.#close)
    if (content !== undefined) out.append(bytes, content.start + 1, content.end - 1)
    out.byte(QUOTE)
  }
}

/** A text as it stands inside a string token. */
function inside(text: string): Buffer {
  return Buffer.from(JSON.stringify(text).slice(1, -1))
}
