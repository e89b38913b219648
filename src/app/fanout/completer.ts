import { type Answer, isFlaw } from '../../core/answer.ts'
import {
  addUsage,
  assistantMessage,
  batchLine,
  chatLine,
  completionLine,
  type FailedRecord,
  type Provenance,
  type TurnProvenance,
} from '../../core/output-record.ts'
import type { InputRecord } from '../../core/record.ts'
import { RecordError } from '../../core/record-error.ts'
import {
  batchRequest,
  chatRequest,
  completionRequest,
  openingMessages,
  type RequestSettings,
  requestHash,
  userMessage,
} from '../../core/request.ts'
import type { Timing } from '../../net/outcome.ts'
import {
  type AnswerCounts,
  countsOf,
  countsOfCut,
  cutFailure,
  generatedTokens,
  isCut,
} from './answer-counts.ts'
import type { Asked, Asker } from './asker.ts'

/** What became of a record. */
export type Completion =
  | { kind: 'answered'; line: string; counts: AnswerCounts }
  | ({ kind: 'failed'; counts?: AnswerCounts } & Omit<
      FailedRecord,
      'idToken' | 'elapsedMs' | 'input'
    > &
      Paid)
  | ({ kind: 'left' } & Paid)

interface Paid {
  /** Tokens of turns that were answered before the one that was not: they are generated again. */
  discarded?: number
}

export interface CompleterSettings extends RequestSettings {
  /** What becomes of an answer that the token limit cut. */
  onLength: 'keep' | 'fail'
}

/** Answers one record: one request, or one a turn, and the line that comes of it. */
export class Completer {
  #asker: Asker
  #settings: CompleterSettings

  constructor(asker: Asker, settings: CompleterSettings) {
    this.#asker = asker
    this.#settings = settings
  }

  /** The hash of what the record asks, to compare with an answer that is there already. */
  hash(record: InputRecord): string {
    return requestHash(record, this.#settings)
  }

  /** @throws RecordError where the record does not fit the endpoint */
  complete(record: InputRecord): Promise<Completion> {
    if (record.shape === 'batch') return this.#batch(record)
    if (this.#settings.endpoint === 'completions') return this.#completion(record)
    return this.#conversation(record)
  }

  async #batch(record: InputRecord): Promise<Completion> {
    const asked = await this.#asker.ask(batchRequest(record), false, true)
    if (asked.kind !== 'replied') return notReplied(asked)
    const { outcome } = asked
    if (outcome.kind !== 'raw') throw new Error('a batch line was not answered raw')
    const { answer, usage, status, requestId, body } = outcome
    const line = batchLine(record, status, requestId, body)
    if (answer !== undefined) return this.#answered(line, answer, asked.attempts)
    return { kind: 'answered', line, counts: { usage, cut: false, filtered: false, empty: false } }
  }

  async #completion(record: InputRecord): Promise<Completion> {
    if (record.shape !== 'prompt') {
      throw new RecordError('no-prompt', '--endpoint completions takes records with a prompt')
    }
    const asked = await this.#asker.ask(completionRequest(record, this.#settings), false, false)
    if (asked.kind !== 'replied') return notReplied(asked)
    const answer = answerOf(asked)
    const { timing } = asked.outcome
    const provenance = this.#provenance(record, asked.attempts, asked.startedAt, timing)
    return this.#answered(completionLine(record, answer, provenance), answer, asked.attempts)
  }

  /** What becomes of a record with one answer. */
  #answered(line: string, answer: Answer, attempts: number): Completion {
    if (!this.#fails(answer)) return { kind: 'answered', line, counts: countsOf(answer) }
    const counts = countsOfCut(answer.usage)
    return { kind: 'failed', failure: cutFailure(answer), attempts, finishedTurns: [], counts }
  }

  #fails(answer: Answer): boolean {
    return this.#settings.onLength === 'fail' && isCut(answer)
  }

  /** Asks turn after turn; every answer joins the context of the next one. */
  async #conversation(record: InputRecord): Promise<Completion> {
    if (record.shape === 'prompt' && !record.asks[0]!.startsWith('"')) {
      throw new RecordError('no-prompt', 'token ids are a prompt for --endpoint completions only')
    }
    const settings = this.#settings
    const context = openingMessages(record, settings)
    const messages = [...context]
    const turns = record.shape === 'turns' ? record.asks : ['']
    let attempts = 0
    let startedAt: number | undefined
    let usage: Answer['usage']
    let cut = false
    let tokens = 0
    let timing: Timing = { firstToken: undefined, total: 0 }
    const told: TurnProvenance[] = []
    for (const [turn, text] of turns.entries()) {
      if (turn > 0) {
        context.push(userMessage(text))
        messages.push(userMessage(text))
      }
      const request = chatRequest(record, settings, context)
      const asked = await this.#asker.ask(request, turn > 0, false)
      if (asked.kind === 'left') return { ...asked, discarded: tokens }
      const earlierAttempts = attempts
      attempts += asked.attempts
      const finishedTurns = messages.slice(0, turn === 0 ? 0 : -1)
      if (asked.kind === 'failed') {
        return { ...asked, attempts, earlierAttempts, finishedTurns, discarded: tokens }
      }
      const answer = answerOf(asked)
      startedAt ??= asked.startedAt
      timing = addTiming(timing, asked.outcome.timing)
      usage = addUsage(usage, answer.usage)
      tokens += generatedTokens(answer.usage) ?? asked.pieces
      if (this.#fails(answer)) {
        const failed = { failure: cutFailure(answer), counts: countsOfCut(usage) }
        return { kind: 'failed', ...failed, attempts, earlierAttempts, finishedTurns }
      }
      cut ||= isCut(answer)
      messages.push(assistantMessage(answer))
      context.push(this.#inHistory(answer))
      told.push(this.#turn(asked))
      if (turn < turns.length - 1) continue
      const total = usage === undefined ? answer : { ...answer, usage }
      const provenance = this.#provenance(record, attempts, startedAt, timing, told)
      const line = chatLine(record, messages, total, provenance)
      return { kind: 'answered', line, counts: { ...countsOf(total), cut } }
    }
    throw new Error('a record without turns')
  }

  /** An answer as it goes into the context of the next turn. */
  #inHistory(answer: Answer): string {
    // Reasoning belongs to its own turn: chat templates drop it from the history.
    const keep = this.#settings.historyReasoning === 'keep'
    return assistantMessage(keep ? answer : { ...answer, reasoning: '' })
  }

  #turn({ outcome, attempts }: Extract<Asked, { kind: 'replied' }>): TurnProvenance {
    if (outcome.kind !== 'answer') throw new Error('no answer was read')
    const { answer, timing } = outcome
    const first = this.#settings.stream ? timing.firstToken : undefined
    return {
      finish_reason: answer.finishReason,
      ...(answer.usage !== undefined && { usage: answer.usage }),
      attempts,
      ...(first !== undefined && { first_token_ms: Math.round(first) }),
      total_ms: Math.round(timing.total),
    }
  }

  #provenance(
    record: InputRecord,
    attempts: number,
    startedAt: number,
    timing: Timing,
    turns: readonly TurnProvenance[] = [],
  ): Provenance {
    return {
      attempts,
      startedAt,
      firstTokenMs: this.#settings.stream ? timing.firstToken : undefined,
      totalMs: timing.total,
      requestHash: requestHash(record, this.#settings),
      turns,
    }
  }
}

function notReplied(asked: Exclude<Asked, { kind: 'replied' }>): Completion {
  return asked.kind === 'left' ? asked : { ...asked, finishedTurns: [] }
}

function answerOf(asked: Extract<Asked, { kind: 'replied' }>): Answer {
  const { outcome } = asked
  if (outcome.kind !== 'answer' || isFlaw(outcome.answer)) throw new Error('no answer was read')
  return outcome.answer
}

/** The first token is that of the first turn, the total is all the server's time. */
function addTiming(a: Timing, b: Timing): Timing {
  return { firstToken: a.firstToken ?? b.firstToken, total: a.total + b.total }
}
