import type { AnswerSample } from './answer-sample.ts'
import { BusyTime } from './busy-time.ts'
import { Histogram } from './histogram.ts'
import { OpenFailures } from './open-failures.ts'
import { TimeBins } from './time-bins.ts'

/** Total timeouts that people set, in seconds. */
const TIMEOUTS = [60, 120, 300, 600, 1200, 3600] as const
const BARS = 24
/**
 * Bins of answers: finished, tokens, milliseconds of open requests, those before a first token, and
 * how many first tokens came.
 */
const FINISHED = 0
const TOKENS = 1
const OPEN = 2
const WAITING = 3
const STARTED = 4
/** Bins with this share of the most open requests are the run at its height: no ramp, no tail. */
const HEIGHT = 0.8
/** Names of finish reasons or codes at most: damaged data must not fill the memory. */
const MOST_NAMES = 100

/** A distribution in a report. */
export interface Distribution {
  count: number
  mean: number
  p50: number
  p90: number
  p99: number
  max: number
  bars: { from: number; to: number; count: number }[]
}

/** What a total timeout would have done to these answers. */
export interface WhatIf {
  timeout_s: number
  killed: number
  killed_share: number
  /** Mean tokens of those left, and how much less that is than of all, as a share; null: unknown. */
  survivors_mean_tokens: number | null
  shorter_share: number | null
}

export interface Report {
  records: number
  answered: number
  /** Records that failed and have no answer. */
  failed: number
  invalid: number
  /** Answers that were read before, line for line: no records. */
  repeated: number
  finish_reasons: Record<string, number>
  cut_by_length: number
  empty: number
  retried: number
  /** Null where no record tells. */
  tokens: { prompt: number | null; completion: number | null; reasoning: number | null }
  /** Share of reasoning in tokens where servers tell, else in characters; of so many answers. */
  reasoning_share: number | null
  reasoning_of: number
  started_at: string | null
  /** Without its pauses, between so many parts. */
  seconds: number | null
  parts: number
  paused_seconds: number
  /** The rates and open requests are of those answers that tell when they began and ended. */
  rates_of: { answers: number; with_tokens: number }
  requests_per_second: number | null
  /** As if those that do not tell their tokens were as long as the others. */
  tokens_per_second: number | null
  mean_open: number | null
  /** While about as many requests were open as ever: how many, and how many waited in a queue. */
  at_height: { seconds: number; open: number; queued: number } | null
  over_time: {
    bin_s: number
    bins: { time: string; requests_per_s: number; tokens_per_s: number | null; open: number }[]
  }
  total_ms: Distribution
  /** A record of several turns has a request for each. */
  longest_request_ms: number | null
  first_token_ms: Distribution
  answer_tokens: Distribution
  failures: Record<string, number>
  /** Records that failed with each code and are answered, before that in the files or behind it. */
  answered_later: Record<string, number>
  what_if: WhatIf[]
}

/** Adds answers and failures up, in memory that does not grow. */
export class RunReport {
  answered = 0
  invalid = 0
  repeated = 0
  readonly failures = new OpenFailures()
  #finish = new Map<string, number>()
  #empty = 0
  #retried = 0
  #tokens: Report['tokens'] = { prompt: null, completion: null, reasoning: null }
  #chars = { answer: 0, reasoning: 0 }
  /** Of answers that tell their tokens of reasoning, and all. */
  #reasoned = { answers: 0, reasoning: 0, completion: 0 }
  #total = new Histogram()
  #longest = 0
  #first = new Histogram()
  #length = new Histogram()
  #bins = new TimeBins(5)
  #time = new BusyTime()
  /** Answers in it, and those of them that tell their tokens. */
  #placed = { answers: 0, with_tokens: 0 }
  /** Of answers whose time and tokens are known: all, and those that each timeout leaves. */
  #timed = { count: 0, tokens: 0 }
  #left = TIMEOUTS.map(() => ({ killed: 0, count: 0, tokens: 0 }))

  answer(sample: AnswerSample): void {
    const { completionTokens, totalMs, firstTokenMs } = sample
    this.answered++
    count(this.#finish, sample.finishReason)
    if (sample.isEmpty) this.#empty++
    if ((sample.attempts ?? 1) > 1) this.#retried++
    this.#tokens.prompt = added(this.#tokens.prompt, sample.promptTokens)
    this.#tokens.completion = added(this.#tokens.completion, completionTokens)
    this.#tokens.reasoning = added(this.#tokens.reasoning, sample.reasoningTokens)
    this.#reasoning(sample)
    if (completionTokens !== undefined) this.#length.add(completionTokens)
    if (firstTokenMs !== undefined) this.#first.add(firstTokenMs)
    if (totalMs === undefined) return
    this.#total.add(totalMs)
    const longest = sample.longestMs ?? totalMs
    this.#longest = Math.max(this.#longest, longest)
    this.#whatIf(longest, completionTokens)
    this.#overTime(sample, totalMs)
  }

  toJSON(): Report {
    const { busy, from, parts, paused } = this.#time
    const seconds = busy > 0 ? busy / 1000 : null
    const rate = (amount: number | null): number | null =>
      seconds === null || amount === null ? null : amount / seconds
    const bins = this.#bins.list()
    const width = this.#bins.width / 1000
    const failures = this.failures.byCode()
    const failed = this.failures.count
    const total = (field: number): number => bins.reduce((sum, { sums }) => sum + sums[field]!, 0)
    const { answers, with_tokens: told } = this.#placed
    const tokens = (sum: number): number | null => (told > 0 ? (sum * answers) / told : null)
    return {
      records: this.answered + failed + this.invalid,
      answered: this.answered,
      failed,
      invalid: this.invalid,
      repeated: this.repeated,
      finish_reasons: sorted(this.#finish),
      cut_by_length: this.#finish.get('length') ?? 0,
      empty: this.#empty,
      retried: this.#retried,
      tokens: { ...this.#tokens },
      ...this.#reasoningShare(),
      started_at: seconds === null ? null : new Date(from!).toISOString(),
      seconds,
      parts,
      paused_seconds: paused / 1000,
      rates_of: { ...this.#placed },
      requests_per_second: rate(total(FINISHED)),
      tokens_per_second: rate(tokens(total(TOKENS))),
      mean_open: rate(total(OPEN) / 1000),
      at_height: this.#atHeight(bins),
      over_time: {
        bin_s: width,
        bins: bins.map(({ at, sums }) => ({
          time: new Date(at).toISOString(),
          requests_per_s: sums[FINISHED]! / width,
          tokens_per_s: tokens(sums[TOKENS]! / width),
          open: sums[OPEN]! / 1000 / width,
        })),
      },
      total_ms: distribution(this.#total),
      longest_request_ms: this.#total.count === 0 ? null : this.#longest,
      first_token_ms: distribution(this.#first),
      answer_tokens: distribution(this.#length),
      failures: failures.open,
      answered_later: failures.answered,
      what_if: this.#total.count === 0 ? [] : this.#whatIfs(),
    }
  }

  #reasoning({ completionTokens, reasoningTokens, chars, reasoningChars }: AnswerSample): void {
    this.#chars.answer += chars
    this.#chars.reasoning += reasoningChars
    if (completionTokens === undefined || reasoningTokens === undefined) return
    this.#reasoned.answers++
    this.#reasoned.reasoning += reasoningTokens
    this.#reasoned.completion += completionTokens
  }

  #reasoningShare(): Pick<Report, 'reasoning_share' | 'reasoning_of'> {
    const { answers, reasoning, completion } = this.#reasoned
    if (reasoning > 0 && completion > 0) {
      return { reasoning_share: reasoning / completion, reasoning_of: answers }
    }
    const chars = this.#chars.answer + this.#chars.reasoning
    const share = chars > 0 ? this.#chars.reasoning / chars : null
    return { reasoning_share: share, reasoning_of: share === null ? 0 : this.answered }
  }

  #overTime({ startedAt, firstTokenMs, completionTokens }: AnswerSample, totalMs: number): void {
    const end = (startedAt ?? Number.NaN) + totalMs
    // Beyond what a Date can be: a damaged number.
    if (startedAt === undefined || !(Math.abs(end) < 8.64e15)) return
    this.#placed.answers++
    if (completionTokens !== undefined) this.#placed.with_tokens++
    this.#time.add(startedAt, end)
    this.#bins.add(end, FINISHED, 1)
    this.#bins.spread(startedAt, end, OPEN, totalMs)
    const first = startedAt + Math.min(firstTokenMs ?? 0, totalMs)
    if (firstTokenMs !== undefined) {
      this.#bins.spread(startedAt, first, WAITING, first - startedAt)
      this.#bins.add(first, STARTED, 1)
    }
    this.#bins.spread(first, end, TOKENS, completionTokens ?? 0)
  }

  /** A first token takes the least of all where there is no queue: what is more was spent in one. */
  #atHeight(bins: readonly { sums: Float64Array }[]): Report['at_height'] {
    const most = Math.max(0, ...bins.map(({ sums }) => sums[OPEN]!))
    if (most === 0) return null
    const high = bins.filter(({ sums }) => sums[OPEN]! >= HEIGHT * most)
    const ms = high.length * this.#bins.width
    const mean = (field: number): number =>
      high.reduce((sum, { sums }) => sum + sums[field]!, 0) / ms
    const floor = this.#first.bars(BARS)[0]?.from ?? 0
    const queued = Math.max(0, mean(WAITING) - mean(STARTED) * floor)
    return { seconds: ms / 1000, open: mean(OPEN), queued }
  }

  /** A timeout holds for each request, and a record with one that was killed has failed. */
  #whatIf(longestMs: number, tokens: number | undefined): void {
    if (tokens !== undefined) {
      this.#timed.count++
      this.#timed.tokens += tokens
    }
    for (const [index, timeout] of TIMEOUTS.entries()) {
      const left = this.#left[index]!
      if (longestMs > timeout * 1000) left.killed++
      else if (tokens !== undefined) {
        left.count++
        left.tokens += tokens
      }
    }
  }

  #whatIfs(): WhatIf[] {
    const mean = this.#timed.tokens / this.#timed.count
    return TIMEOUTS.map((timeout, index) => {
      const { killed, count: left, tokens } = this.#left[index]!
      const survivors = left > 0 ? tokens / left : null
      return {
        timeout_s: timeout,
        killed,
        killed_share: killed / this.#total.count,
        survivors_mean_tokens: survivors,
        shorter_share: survivors === null ? null : mean > 0 ? 1 - survivors / mean : 0,
      }
    })
  }
}

function added(sum: number | null, amount: number | undefined): number | null {
  return amount === undefined ? sum : (sum ?? 0) + amount
}

function distribution(histogram: Histogram): Distribution {
  const { max, count: values } = histogram
  const at = (share: number): number => Math.round(Math.min(max, histogram.percentile(share)))
  return {
    count: values,
    mean: histogram.mean,
    p50: at(0.5),
    p90: at(0.9),
    p99: at(0.99),
    max,
    bars: histogram.bars(BARS),
  }
}

function count(counts: Map<string, number>, name: string): void {
  const key = counts.has(name) || counts.size < MOST_NAMES ? name.slice(0, 80) : 'others'
  counts.set(key, (counts.get(key) ?? 0) + 1)
}

/** The most frequent first. */
function sorted(counts: Map<string, number>): Record<string, number> {
  return Object.fromEntries([...counts].toSorted((a, b) => b[1] - a[1]))
}
