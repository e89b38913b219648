import type { Usage } from '../../core/answer.ts'
import { AnswerLengths } from '../../core/eta.ts'
import { Histogram } from '../../core/histogram.ts'
import { type AnswerCounts, generatedTokens } from './answer-counts.ts'

/** The counts of a run; `--stats` writes them, progress shows them. */
export class Accounting {
  /** records = answered + failed + skipped + left + otherShards, at the end. */
  records = 0
  answered = 0
  failed = 0
  /** Completed before this run (--resume), or repeated. */
  skipped = 0
  /** Of those: records whose key the input had given before, and which of them were other records. */
  repeated = 0
  conflicts = 0
  /** Neither answered nor failed when the run was stopped. */
  left = 0
  /** Of those: answered by a server, and lost since they could not be written. */
  unwritten = 0
  /** Of those: conversations with a turn that was answered, and the tokens of such turns. */
  begun = 0
  begunTokens = 0
  /** Of the shards of other tasks (--shard). */
  otherShards = 0
  /** Records with an answer of finish_reason length, and with one of content_filter. */
  cutByLength = 0
  filtered = 0
  empty = 0
  retries = 0
  /** Requests sent again because a kept connection had been closed; they cost no attempt. */
  reconnects = 0
  /** Attempts that failed through an outage and cost none. */
  outageRetries = 0
  outages = 0
  failedByCode: Record<string, number> = {}
  retriesByCode: Record<string, number> = {}
  promptTokens = 0
  completionTokens = 0
  reasoningTokens = 0
  /** Requests that a server answered, also of records that are not finished. */
  succeeded = 0
  /** Answers in pieces of text, and in milliseconds where they came whole. */
  readonly lengths = new AnswerLengths()
  readonly durations = new AnswerLengths()
  /**
   * Pieces of text, about as many tokens, that came in streams which then failed, and tokens of turns
   * in conversations that did not come to their end.
   */
  discardedTokens = 0
  /** Milliseconds from dispatch, so without the time in our own queue. */
  readonly latency = new Histogram()
  readonly firstToken = new Histogram()

  /** Notes how long the answer to one request was. */
  addLength(pieces: number, ms: number): void {
    this.durations.add(ms)
    if (pieces > 0) this.lengths.add(pieces)
  }

  /** Counts the answer to a record. */
  addAnswer({ usage, cut, filtered, empty }: AnswerCounts): void {
    this.#addUsage(usage)
    if (cut) this.cutByLength++
    if (filtered) this.filtered++
    if (empty) this.empty++
  }

  /** Counts a record that neither is answered nor failed. @param discarded tokens of finished turns */
  addLeft(discarded: number): void {
    this.left++
    this.discardedTokens += discarded
    if (discarded === 0) return
    this.begun++
    this.begunTokens += discarded
  }

  #addUsage(usage: Usage | undefined): void {
    // The answers of /responses, to batch lines, have names of their own.
    this.promptTokens += numberOf(usage?.prompt_tokens ?? usage?.input_tokens)
    this.completionTokens += generatedTokens(usage) ?? 0
    const details = (usage?.completion_tokens_details ?? usage?.output_tokens_details) as
      | Usage
      | null
      | undefined
    this.reasoningTokens += numberOf(details?.reasoning_tokens ?? usage?.reasoning_tokens)
  }

  /** The counts under the names of the interface. */
  toJSON(): object {
    return {
      records: this.records,
      answered: this.answered,
      failed: this.failed,
      skipped: this.skipped,
      repeated: this.repeated,
      left: this.left,
      unwritten: this.unwritten,
      other_shards: this.otherShards,
      finish: { length: this.cutByLength, content_filter: this.filtered, empty: this.empty },
      failed_by_code: this.failedByCode,
      retries: this.retries,
      retries_by_code: this.retriesByCode,
      reconnects: this.reconnects,
      outages: this.outages,
      outage_retries: this.outageRetries,
      tokens: {
        prompt: this.promptTokens,
        completion: this.completionTokens,
        reasoning: this.reasoningTokens,
        discarded: this.discardedTokens,
      },
      latency_ms: this.latency.summary(),
      first_token_ms: this.firstToken.summary(),
    }
  }
}

export function increment(counts: Record<string, number>, name: string): void {
  counts[name] = (counts[name] ?? 0) + 1
}

function numberOf(value: unknown): number {
  return typeof value === 'number' && Number.isFinite(value) ? value : 0
}
