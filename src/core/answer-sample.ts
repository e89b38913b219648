import { AnswerReader } from './answer-record.ts'
import { contentLength, REASONING_MEMBERS } from './conversation.ts'
import { stringAt, type ValueRange } from './field.ts'
import type { JsonScanner } from './json-scan.ts'
import { MemberFinder } from './member-finder.ts'
import { RowProblem } from './row-problem.ts'
import { ToldValues } from './told-values.ts'

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
   * @throws ImpossibleValue where a number or date of an answer cannot be
   */
  read(scanner: JsonScanner, bytes: Buffer, range: ValueRange): AnswerSample | string | undefined {
    this.#finder.look(scanner, bytes)
    const members = MEMBERS.map((_, place) => this.#finder.value(place))
    const at = (place: number): number => members[place]?.start ?? range.start
    let record: ReturnType<AnswerReader['read']>
    try {
      record = this.#answers.read(scanner, bytes, range)
    } catch (error) {
      if (!(error instanceof RowProblem)) throw error
      // No trainer would take it, but it is an answer where the server's own body is there.
      record = 'no-conversation'
    }
    if (record === 'failed') return failureCode(bytes, members)
    const conversation = record === 'no-conversation' || record.isBatch ? undefined : record
    const body = conversation === undefined ? bodyOf(bytes, members) : undefined
    if (conversation === undefined && body === undefined) return undefined
    const sample = emptySample(new ToldValues(parse(bytes, members[TIMING]), at(TIMING)))
    const own = { attempts: parseValue(bytes, members[ATTEMPTS]) }
    sample.attempts = new ToldValues(own, at(ATTEMPTS)).count('attempts')
    addTurns(sample, parseValue(bytes, members[TURNS]), at(TURNS))
    if (body !== undefined) {
      const place = members[RESPONSE] === undefined ? USAGE : RESPONSE
      return fromBody(sample, body, at(place))
    }
    addUsage(sample, parse(bytes, members[USAGE]), at(USAGE))
    sample.finishReason = stringAt(bytes, members[FINISH]) ?? 'none'
    const answer = conversation?.turns.at(-1)
    if (answer?.content !== undefined) sample.chars = contentLength(bytes, answer.content)
    if (answer?.reasoning !== undefined)
      sample.reasoningChars = contentLength(bytes, answer.reasoning)
    sample.isEmpty = sample.chars === 0 && answer?.toolCalls === undefined
    return sample
  }
}

/** Members of other tools have the name, too: only turns that all tell their time are looked at. */
function addTurns(sample: AnswerSample, turns: unknown, at: number): void {
  if (!Array.isArray(turns) || turns.length === 0) return
  if (!turns.every((turn) => typeof object(turn)?.total_ms === 'number')) return
  const told = turns.map((turn) => new ToldValues(object(turn), at))
  const most = (values: readonly number[]): number => values.reduce((a, b) => Math.max(a, b))
  sample.longestMs = most(told.map((turn) => turn.duration('total_ms') ?? 0))
  sample.attempts = most(told.map((turn) => turn.count('attempts') ?? 1))
}

function emptySample(timing: ToldValues): AnswerSample {
  const totalMs = timing.duration('total_ms')
  return {
    finishReason: 'none',
    isEmpty: true,
    promptTokens: undefined,
    completionTokens: undefined,
    reasoningTokens: undefined,
    chars: 0,
    reasoningChars: 0,
    attempts: undefined,
    startedAt: timing.date('started_at'),
    firstTokenMs: timing.duration('first_token_ms', totalMs),
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

function fromBody(sample: AnswerSample, body: Json, at: number): AnswerSample {
  addUsage(sample, object(body.usage), at)
  const choice = Array.isArray(body.choices) ? object(body.choices[0]) : undefined
  if (typeof choice?.finish_reason === 'string') sample.finishReason = choice.finish_reason
  const message = object(choice?.message)
  const reasoning = REASONING_MEMBERS.map((name) => message?.[name])
  sample.chars = length(message?.content ?? choice?.text)
  sample.reasoningChars = reasoning.map(length).find((chars) => chars > 0) ?? 0
  sample.isEmpty = sample.chars === 0 && !Array.isArray(message?.tool_calls)
  return sample
}

function addUsage(sample: AnswerSample, usage: Json | undefined, at: number): void {
  const told = new ToldValues(usage, at)
  const details = new ToldValues(object(usage?.completion_tokens_details), at)
  sample.promptTokens = told.count('prompt_tokens')
  sample.completionTokens = told.count('completion_tokens')
  sample.reasoningTokens = details.count('reasoning_tokens') ?? told.count('reasoning_tokens')
}

/** The code of a failed record: fanout-complete's, the server's, or the status. */
function failureCode(bytes: Buffer, members: readonly (ValueRange | undefined)[]): string {
  const error = parse(bytes, members[ERROR])
  for (const word of [error?.code, error?.type]) if (typeof word === 'string') return word
  const response = parse(bytes, members[RESPONSE])
  const status = response?.status_code
  return typeof status !== 'number' ? 'unknown' : `http-${status}`
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
