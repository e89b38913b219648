import { AnswerReader } from './answer-record.ts'
import { contentLength } from './conversation.ts'
import { stringAt, type ValueRange } from './field.ts'
import type { JsonScanner } from './json-scan.ts'
import { MemberFinder } from './member-finder.ts'
import { RowProblem } from './row-problem.ts'

const MEMBERS = [
  'timing',
  'usage',
  'finish_reason',
  'error',
  'response',
  'choices',
  'text',
  'attempts',
  'turns',
] as const
const TIMING = 0
const USAGE = 1
const FINISH = 2
const ERROR = 3
const RESPONSE = 4
const CHOICES = 5
const TEXT = 6
const ATTEMPTS = 7
const TURNS = 8
/** A longer member is not one of those that are looked into here. */
const LONGEST = 64 * 1024 * 1024

/** What a report wants to know of one answer. Undefined: the record does not tell. */
export interface AnswerSample {
  finishReason: string
  isEmpty: boolean
  promptTokens: number | undefined
  completionTokens: number | undefined
  reasoningTokens: number | undefined
  /** Characters of the answer, and of its reasoning. */
  chars: number
  reasoningChars: number
  /** Requests that it took; of several turns, those of the turn that took most. */
  attempts: number | undefined
  /** Milliseconds since 1970. */
  startedAt: number | undefined
  firstTokenMs: number | undefined
  totalMs: number | undefined
  /** Its longest request, which is the whole unless the record tells the time of each turn. */
  longestMs: number | undefined
}

type Json = Record<string, unknown>

/** Reads records of fanout-complete, lines of batch output, and bare completions. */
export class SampleReader {
  #finder = new MemberFinder(MEMBERS)
  #answers = new AnswerReader()

  /**
   * Reads the object that the scanner has just read from `range`.
   *
   * @returns a sample, the code of a failure, or undefined where it is neither
   */
  read(scanner: JsonScanner, bytes: Buffer, range: ValueRange): AnswerSample | string | undefined {
    this.#finder.look(scanner, bytes)
    const members = MEMBERS.map((_, place) => this.#finder.value(place))
    const timing = parse(bytes, members[TIMING])
    let record: ReturnType<AnswerReader['read']>
    try {
      record = this.#answers.read(scanner, bytes, range)
    } catch (error) {
      if (!(error instanceof RowProblem)) throw error
      // No trainer would take it, but it is an answer where the server's own body is there.
      record = 'no-conversation'
    }
    if (record === 'failed') return failureCode(bytes, members)
    const sample = emptySample(timing, number(parseValue(bytes, members[ATTEMPTS])))
    addTurns(sample, parseValue(bytes, members[TURNS]))
    if (record === 'no-conversation' || record.isBatch) {
      const body = bodyOf(bytes, members)
      return body && fromBody(sample, body)
    }
    addUsage(sample, parse(bytes, members[USAGE]))
    sample.finishReason = stringAt(bytes, members[FINISH]) ?? 'none'
    const answer = record.turns.at(-1)
    if (answer?.content !== undefined) sample.chars = contentLength(bytes, answer.content)
    if (answer?.reasoning !== undefined)
      sample.reasoningChars = contentLength(bytes, answer.reasoning)
    sample.isEmpty = sample.chars === 0 && answer?.toolCalls === undefined
    return sample
  }
}

/** Members of other tools have the name, too: only turns that all tell their time are looked at. */
function addTurns(sample: AnswerSample, turns: unknown): void {
  if (!Array.isArray(turns) || turns.length === 0) return
  const times = turns.map((turn) => number(object(turn)?.total_ms))
  if (!times.every((time) => time !== undefined)) return
  sample.longestMs = times.reduce((most, time) => Math.max(most, time))
  const attempts = turns.map((turn) => number(object(turn)?.attempts) ?? 1)
  sample.attempts = attempts.reduce((most, count) => Math.max(most, count))
}

function emptySample(timing: Json | undefined, attempts: number | undefined): AnswerSample {
  const startedAt =
    typeof timing?.started_at === 'string' ? Date.parse(timing.started_at) : Number.NaN
  const totalMs = number(timing?.total_ms)
  return {
    finishReason: 'none',
    isEmpty: true,
    promptTokens: undefined,
    completionTokens: undefined,
    reasoningTokens: undefined,
    chars: 0,
    reasoningChars: 0,
    attempts,
    startedAt: Number.isNaN(startedAt) ? undefined : startedAt,
    firstTokenMs: number(timing?.first_token_ms),
    totalMs,
    longestMs: totalMs,
  }
}

/** The server's own body: a batch line's, or a line that is one. */
function bodyOf(bytes: Buffer, members: readonly (ValueRange | undefined)[]): Json | undefined {
  const response = parse(bytes, members[RESPONSE])
  if (response !== undefined) return object(response.body) ?? response
  const choices = parseValue(bytes, members[CHOICES])
  if (Array.isArray(choices)) {
    return { choices: choices as unknown, usage: parse(bytes, members[USAGE]) }
  }
  const text = stringAt(bytes, members[TEXT])
  if (text === undefined) return undefined
  const finish = stringAt(bytes, members[FINISH])
  return { choices: [{ text, finish_reason: finish }], usage: parse(bytes, members[USAGE]) }
}

function fromBody(sample: AnswerSample, body: Json): AnswerSample {
  addUsage(sample, object(body.usage))
  const choice = Array.isArray(body.choices) ? object(body.choices[0]) : undefined
  if (typeof choice?.finish_reason === 'string') sample.finishReason = choice.finish_reason
  const message = object(choice?.message)
  const reasoning = message?.reasoning_content ?? message?.reasoning
  sample.chars = length(message?.content ?? choice?.text)
  sample.reasoningChars = length(reasoning)
  sample.isEmpty = sample.chars === 0 && !Array.isArray(message?.tool_calls)
  return sample
}

function addUsage(sample: AnswerSample, usage: Json | undefined): void {
  const details = object(usage?.completion_tokens_details)
  sample.promptTokens = number(usage?.prompt_tokens)
  sample.completionTokens = number(usage?.completion_tokens)
  sample.reasoningTokens = number(details?.reasoning_tokens ?? usage?.reasoning_tokens)
}

/** The code of a failed record: fanout-complete's, the server's, or the status. */
function failureCode(bytes: Buffer, members: readonly (ValueRange | undefined)[]): string {
  const error = parse(bytes, members[ERROR])
  for (const word of [error?.code, error?.type]) if (typeof word === 'string') return word
  const response = parse(bytes, members[RESPONSE])
  const status = number(response?.status_code)
  return status === undefined ? 'unknown' : `http-${status}`
}

function parse(bytes: Buffer, range: ValueRange | undefined): Json | undefined {
  return object(parseValue(bytes, range))
}

function parseValue(bytes: Buffer, range: ValueRange | undefined): unknown {
  if (range === undefined || range.end - range.start > LONGEST) return undefined
  return JSON.parse(bytes.toString('utf8', range.start, range.end))
}

function object(value: unknown): Json | undefined {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
    ? (value as Json)
    : undefined
}

function length(value: unknown): number {
  return typeof value === 'string' ? value.length : Array.isArray(value) ? value.length : 0
}

/** What can be a count or a duration. */
function number(value: unknown): number | undefined {
  return typeof value === 'number' && Number.isFinite(value) && value >= 0 ? value : undefined
}
