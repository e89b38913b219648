import { findMember, isToken, stringAt, type ValueRange } from './field.ts'
import type { JsonScanner } from './json-scan.ts'
import { OwnAnswer } from './own-answer.ts'

/** Why a completed record may be worth another try; words of `--redo`. */
export const SHORTCOMINGS = ['length', 'content_filter', 'empty'] as const
export type Shortcoming = (typeof SHORTCOMINGS)[number]

const NONE: readonly Shortcoming[] = []
const own = new OwnAnswer()

const STATUS = Buffer.from('status')
const SUCCESS = Buffer.from('"success"')
const ERROR = Buffer.from('error')
const RESPONSE = Buffer.from('response')
const STATUS_CODE = Buffer.from('status_code')
const BODY = Buffer.from('body')
const CHOICES = Buffer.from('choices')
const CONVERSATIONS = Buffer.from('conversations')
const FINISH_REASON = Buffer.from('finish_reason')
const TEXT = Buffer.from('text')
const TURNS = Buffer.from('turns')

/**
 * Whether the record that the scanner has just read is an answer and not the trace of a failure:
 * `status` (where there is one) success or completed, no `error`, a `response.status_code` (where
 * there is one) of 200 to 299. Leaves the scanner elsewhere.
 */
export function isCompleted(scanner: JsonScanner, bytes: Buffer): boolean {
  const status = findMember(scanner, bytes, STATUS)
  if (status !== undefined && !isNull(bytes, status) && !isToken(bytes, status, SUCCESS)) {
    const word = stringAt(bytes, status)
    if (word !== 'success' && word !== 'completed') return false
  }
  const error = findMember(scanner, bytes, ERROR)
  if (error !== undefined && !isNull(bytes, error)) return false
  const response = findMember(scanner, bytes, RESPONSE)
  if (response === undefined || bytes[response.start] !== 0x7b) return true
  scanner.value(response.start)
  const code = findMember(scanner, bytes, STATUS_CODE)
  if (code === undefined || isNull(bytes, code)) return true
  const number = Number(bytes.toString('latin1', code.start, code.end))
  return number >= 200 && number <= 299
}

/**
 * What the record that the scanner has just read falls short of as an answer: cut by `length`,
 * filtered, or empty. That is looked for in `response.body`, in `response`, then at top level, under
 * `choices` or in fanout-complete's own form. Leaves the scanner elsewhere.
 *
 * @param start where the record's value begins
 * @returns undefined where it is the trace of a failure
 */
export function shortcomingsOf(
  scanner: JsonScanner,
  bytes: Buffer,
  start: number,
  end: number,
): readonly Shortcoming[] | undefined {
  const form = own.look(scanner, bytes)
  if (form === 'whole') return NONE
  if (!isCompleted(scanner, bytes)) return undefined
  if (form === 'foreign' && !mayFallShort(bytes.subarray(start, end))) return NONE
  for (const holder of holders(scanner, bytes, start)) {
    scanner.again(holder)
    const choices = findMember(scanner, bytes, CHOICES)
    if (choices !== undefined) return ofChoices(parse(bytes, choices))
    const conversations = findMember(scanner, bytes, CONVERSATIONS)
    const text = findMember(scanner, bytes, TEXT)
    const finish = findMember(scanner, bytes, FINISH_REASON)
    if (conversations === undefined && text === undefined && finish === undefined) continue
    const turns = findMember(scanner, bytes, TURNS)
    const messages = conversations && parse(bytes, conversations)
    const answer: unknown = Array.isArray(messages) ? messages.at(-1) : undefined
    return ofChoices([
      {
        finish_reason: stringAt(bytes, finish),
        ...(conversations && { message: answer ?? {} }),
        ...(text && { text: stringAt(bytes, text) }),
      },
      ...(turns ? ofTurns(parse(bytes, turns), messages) : []),
    ])
  }
  return []
}

/** What an answer that falls short has somewhere as a value. */
const SIGNS = ['"length"', '"content_filter"', '""', 'null'].map((sign) => Buffer.from(sign))

/** Native searches that spare most records the parsing. */
function mayFallShort(line: Buffer): boolean {
  return SIGNS.some((sign) => standsAsValue(line, sign))
}

/** Whether `sign` stands behind a colon somewhere: in prose and code it mostly does not. */
function standsAsValue(line: Buffer, sign: Buffer): boolean {
  for (let at = line.indexOf(sign); at >= 0; at = line.indexOf(sign, at + 1)) {
    let before = at - 1
    while (line[before] === 0x20 || line[before] === 0x09) before--
    if (line[before] === 0x3a) return true
  }
  return false
}

function holders(scanner: JsonScanner, bytes: Buffer, start: number): number[] {
  const found = [start]
  scanner.again(start)
  const response = findMember(scanner, bytes, RESPONSE)
  if (response === undefined || bytes[response.start] !== 0x7b) return found
  found.unshift(response.start)
  scanner.value(response.start)
  const body = findMember(scanner, bytes, BODY)
  if (body !== undefined && bytes[body.start] === 0x7b) found.unshift(body.start)
  return found
}

/** The turns of a conversation as choices: each may have been cut, or have said nothing. */
function ofTurns(turns: unknown, messages: unknown): object[] {
  const reasons = Array.isArray(turns)
    ? turns.map((turn: { finish_reason?: unknown } | null) => ({
        finish_reason: turn?.finish_reason,
      }))
    : []
  const answers = Array.isArray(messages)
    ? messages.filter((message: { role?: unknown } | null) => message?.role === 'assistant')
    : []
  return [...reasons, ...answers.map((message: unknown) => ({ message }))]
}

function ofChoices(choices: unknown): Shortcoming[] {
  const found = new Set<Shortcoming>()
  if (!Array.isArray(choices) || choices.length === 0) return ['empty']
  for (const choice of choices as Record<string, unknown>[]) {
    const reason = choice?.finish_reason
    if (reason === 'length' || reason === 'content_filter') found.add(reason)
    if (isEmptyChoice(choice)) found.add('empty')
  }
  return [...found]
}

function isEmptyChoice(choice: Record<string, unknown> | null): boolean {
  const message = choice?.message as Record<string, unknown> | null | undefined
  if (message === undefined) return choice?.text === ''
  const content = message?.content ?? message?.value
  const calls = message?.tool_calls
  if (Array.isArray(calls) && calls.length > 0) return false
  return content === undefined || content === null || content === ''
}

function parse(bytes: Buffer, range: ValueRange): unknown {
  return JSON.parse(bytes.toString('utf8', range.start, range.end))
}

function isNull(bytes: Buffer, range: ValueRange): boolean {
  return bytes[range.start] === 0x6e
}
