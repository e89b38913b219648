import type { AnswerRecord } from './answer-record.ts'
import { batchAnswer } from './batch-form.ts'
import type { ByteBuilder } from './byte-builder.ts'
import type { Turn } from './conversation.ts'
import type { MessageStyle, MessageWriter } from './message-writer.ts'
import { type LeftOutCode, ruleOfAnswer, ruleOfConversation, ruleOfText } from './trainer-rules.ts'

/** What a trainer reads; words of `--to`. */
export const EXPORT_FORMS = [
  'specforge',
  'speculators',
  'modelopt',
  'deepspec',
  'openai-batch',
  'messages',
  'alpaca',
  'parquet',
] as const
export type FormName = (typeof EXPORT_FORMS)[number]

/** One row to be written, as it lies in its line. */
export interface ExportRow {
  bytes: Buffer
  record: AnswerRecord
  /** The id's string token, quotes included. */
  id: Buffer
  turns: readonly Turn[]
  /** Reasoning of turns before the answer is dropped. */
  lastReasoningOnly: boolean
}

export interface ExportForm {
  reasoningName: MessageStyle['reasoningName']
  /** Each assistant turn may become a row of its own (`--reasoning-turns`). */
  byTurns: boolean
  /** Which rule of the trainer a conversation breaks, if any. */
  check(bytes: Buffer, turns: readonly Turn[]): LeftOutCode | undefined
  /**
   * Appends the row, newline included.
   *
   * @returns where its content lies in `out`, which tells duplicates; undefined where only the
   *   conversation in the record can
   */
  write(out: ByteBuilder, row: ExportRow, messages: MessageWriter): Span | undefined
}

/** A range of what was written. */
export interface Span {
  start: number
  end: number
}

const ID = Buffer.from('{"id":')
const SUCCESS = Buffer.from(',"status":"success","conversations":[')
const CONVERSATIONS = Buffer.from(',"conversations":[')
const MESSAGES = Buffer.from(',"messages":[')
const END = Buffer.from(']}\n')
const COMMA = 0x2c

/** id, status, conversations: SpecForge and DeepSpec. */
const regenerated = (reasoningName: MessageStyle['reasoningName']): ExportForm => ({
  reasoningName,
  byTurns: true,
  check: ruleOfText,
  write: conversationRow(SUCCESS),
})

const conversation = (head: Buffer): ExportForm => ({
  reasoningName: 'reasoning_content',
  byTurns: true,
  check: ruleOfConversation,
  write: conversationRow(head),
})

/** How each form is checked and written; Parquet is written from the rows of `parquet`. */
export const FORMS: Record<FormName, ExportForm> = {
  specforge: regenerated('reasoning_content'),
  deepspec: regenerated('thinking'),
  speculators: conversation(CONVERSATIONS),
  modelopt: conversation(MESSAGES),
  messages: conversation(MESSAGES),
  parquet: {
    ...conversation(CONVERSATIONS),
    check: ruleOfText,
  },
  alpaca: {
    reasoningName: 'reasoning_content',
    byTurns: false,
    check: ruleOfText,
    write: alpacaRow,
  },
  'openai-batch': {
    reasoningName: 'reasoning_content',
    byTurns: false,
    check: ruleOfAnswer,
    write: batchAnswer,
  },
}

function conversationRow(head: Buffer): ExportForm['write'] {
  return (out, { bytes, id, turns, lastReasoningOnly }, messages) => {
    out.append(ID)
    out.append(id)
    out.append(head)
    const start = out.length
    const last = turns.length - 1
    for (let index = 0; index <= last; index++) {
      if (index > 0) out.byte(COMMA)
      messages.write(out, bytes, turns[index]!, !lastReasoningOnly || index === last)
    }
    const end = out.length
    out.append(END)
    return { start, end }
  }
}

/** `instruction`, `input`, `output`, and `system` and `history` where there are any. */
function alpacaRow(out: ByteBuilder, row: ExportRow, messages: MessageWriter): Span {
  const { bytes, id, turns } = row
  const system = turns.find(({ role }) => role === 'system')
  const spoken = turns.filter(({ role }) => role !== 'system')
  const put = (head: string, turn: Turn): void => {
    out.append(Buffer.from(head))
    messages.content(out, bytes, turn)
  }
  out.append(ID)
  out.append(id)
  const start = out.length
  put(',"instruction":', spoken.at(-2)!)
  put(',"input":"","output":', spoken.at(-1)!)
  if (system !== undefined) put(',"system":', system)
  for (let index = 0; index < spoken.length - 2; index += 2) {
    put(index === 0 ? ',"history":[[' : ',[', spoken[index]!)
    put(',', spoken[index + 1]!)
    out.byte(0x5d)
  }
  if (spoken.length > 2) out.byte(0x5d)
  const end = out.length
  out.append(Buffer.from('}\n'))
  return { start, end }
}
