import type { AnswerRecord } from './answer-record.ts'
import type { ByteBuilder } from './byte-builder.ts'
import type { ExportRow, Span } from './export-form.ts'
import type { ValueRange } from './field.ts'
import type { MessageWriter } from './message-writer.ts'

const COMMA = 0x2c
const ZERO = 0x30
const ONE = 0x31

/** Whether the token ids of both the prompt and the answer were recorded. */
export function hasTokenIds(bytes: Buffer, { promptTokenIds, tokenIds }: AnswerRecord): boolean {
  return isNumbers(bytes, promptTokenIds) && isNumbers(bytes, tokenIds)
}

/**
 * Appends a pre-tokenised row of speculators: the ids of prompt and answer in one list, a mask of the
 * same length that is 1 for what was generated, and the conversation to look at.
 */
export function tokenRow(out: ByteBuilder, row: ExportRow, messages: MessageWriter): Span {
  const { bytes, record, id, turns } = row
  const prompt = record.promptTokenIds!
  const answer = record.tokenIds!
  const text = (part: string): void => out.append(Buffer.from(part))
  const value = (range: ValueRange | undefined): void => {
    if (range === undefined) text('null')
    else out.append(bytes, range.start, range.end)
  }
  text('{"id":')
  out.append(id, 0, id.length - 1)
  text('_gen0","primary_id":')
  out.append(id)
  const start = out.length
  text(',"input_ids":[')
  out.append(bytes, prompt.start + 1, prompt.end - 1)
  out.byte(COMMA)
  out.append(bytes, answer.start + 1, answer.end - 1)
  text('],"loss_mask":[')
  mask(out, numbersIn(bytes, prompt), ZERO)
  out.byte(COMMA)
  mask(out, numbersIn(bytes, answer), ONE)
  const end = out.length
  text('],"conversations":[')
  for (const [index, turn] of turns.entries()) {
    if (index > 0) out.byte(COMMA)
    messages.write(out, bytes, turn)
  }
  text('],"metadata":{"finish_reason":')
  value(record.finishReason)
  text(',"usage":')
  value(record.usage)
  text('}}\n')
  return { start, end }
}

function mask(out: ByteBuilder, count: number, digit: number): void {
  for (let index = 0; index < count; index++) {
    if (index > 0) out.byte(COMMA)
    out.byte(digit)
  }
}

function isNumbers(bytes: Buffer, range: ValueRange | undefined): boolean {
  if (range === undefined || bytes[range.start] !== 0x5b) return false
  let at = range.start + 1
  while (bytes[at] === 0x20) at++
  return bytes[at]! >= 0x30 && bytes[at]! <= 0x39
}

function numbersIn(bytes: Buffer, { start, end }: ValueRange): number {
  let count = 1
  for (let at = start; at < end; at++) if (bytes[at] === COMMA) count++
  return count
}
