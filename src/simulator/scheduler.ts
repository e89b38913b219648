import { Sequence, type SequenceSpec } from './sequence.ts'
import { WaitingQueue } from './waiting-queue.ts'

/** The rates are in tokens per second, the sizes in tokens; times below are milliseconds. */
export interface SchedulerOptions {
  /** Sequences that run at once at most. */
  readonly maxNumSeqs: number
  /** Size of the KV cache; 0 is unlimited. */
  readonly kvCacheTokens: number
  /** `Infinity` makes prefill free. */
  readonly prefillTokensPerSecond: number
  /** Prompt tokens computed in one step at most, over all sequences (chunked prefill). */
  readonly prefillChunk: number
  /** Aggregate decode rate of an infinite batch. */
  readonly peakTokensPerSecond: number
  /** The batch that reaches half the peak rate; 0 makes the rate the same for every batch. */
  readonly halfBatch: number
}

export interface SchedulerEvents {
  /** The first token exists; `sequence.firstTokenAt` says since when. */
  firstToken?(sequence: Sequence): void
  /** The last token exists; `sequence.finishedAt` says since when. */
  finished?(sequence: Sequence): void
  /** It was removed before that. */
  aborted?(sequence: Sequence): void
}

/** A step, and how many like it follow as long as nobody arrives or leaves. */
interface Step {
  startedAt: number
  duration: number
  repeat: number
}

/**
 * Continuous batching as vLLM's v1 scheduler does it, without the model: a waiting queue, at most
 * `maxNumSeqs` running, one token a step for each that has its prompt computed, prompts computed in
 * chunks beside the decodes, and preemption of the most recently started sequence (recomputed
 * later) when the KV cache is full.
 *
 * A step that gives a token to B sequences and computes P prompt tokens takes
 * `(B + halfBatch) / peakTokensPerSecond + P / prefillTokensPerSecond` seconds, so that the aggregate
 * decode rate is `peak * B / (B + halfBatch)`. It is never idle while anything can run.
 *
 * Pure: time is what the caller says. Equal decode steps are taken in one go, so that a stretch
 * costs O(running sequences) however many steps it has; times of events are exact all the same.
 */
export class Scheduler {
  readonly #options: SchedulerOptions
  readonly #events: SchedulerEvents
  readonly #kvLimit: number
  readonly #waiting = new WaitingQueue<Sequence>()
  #running: Sequence[] = []
  #step: Step | undefined
  #order = 0
  #kvUsed = 0

  /** Output tokens produced so far, by all sequences. */
  generatedTokens = 0
  /** Prompt tokens of all sequences that reached their first token; recomputation not counted. */
  promptTokens = 0
  preemptions = 0
  peakRunning = 0

  constructor(options: SchedulerOptions, events: SchedulerEvents = {}) {
    this.#options = options
    this.#events = events
    this.#kvLimit = options.kvCacheTokens || Number.POSITIVE_INFINITY
  }

  get running(): number {
    return this.#running.length
  }

  get waiting(): number {
    return this.#waiting.size
  }

  /** Share of the KV cache in use, 0 to 1; 0 where it is unlimited. */
  get kvCacheUsage(): number {
    return this.#kvUsed / this.#kvLimit
  }

  /** When the step in progress ends; undefined while idle. */
  get nextStepAt(): number | undefined {
    return this.#step && this.#step.startedAt + this.#step.duration
  }

  /**
   * Queues a sequence at time `now`, which is also advanced to.
   * @throws RangeError for a sequence that could never fit into the KV cache
   */
  add(spec: SequenceSpec, now: number): Sequence {
    const size = spec.promptTokens + spec.outputTokens
    if (size > this.#kvLimit) {
      throw new RangeError(
        `a sequence of ${size} tokens cannot fit into a KV cache of ${this.#kvLimit}`,
      )
    }
    this.advance(now)
    const sequence = new Sequence(spec, this.#order++, now)
    this.#waiting.add(sequence)
    if (this.#step) this.#step.repeat = 1
    else this.#plan(now)
    return sequence
  }

  /** Removes a sequence at once, as vLLM does when the client goes away. */
  abort(sequence: Sequence, now: number): void {
    this.advance(now)
    if (sequence.state === 'waiting') {
      this.#waiting.remove(sequence)
    } else if (sequence.state === 'running') {
      this.#running.splice(this.#running.indexOf(sequence), 1)
      this.#release(sequence)
    } else {
      return
    }
    sequence.state = 'aborted'
    if (this.#step) this.#step.repeat = 1
    this.#events.aborted?.(sequence)
  }

  /** Takes every step that ends by `now`. */
  advance(now: number): void {
    while (this.#step) {
      const { startedAt, duration, repeat } = this.#step
      if (now < startedAt + duration) return
      const steps = repeat === 1 ? 1 : stepsDue(now - startedAt, duration, repeat)
      const end = startedAt + steps * duration
      this.#complete(steps, end)
      this.#plan(end)
    }
  }

  /** Hands out the results of the step in progress and of `steps - 1` equal ones after it. */
  #complete(steps: number, at: number): void {
    let finished = 0
    for (const sequence of this.#running) {
      const { chunk } = sequence
      if (chunk === 0) continue
      const produces = chunk === sequence.left
      sequence.chunk = 0
      sequence.computed += chunk + steps - 1
      this.#kvUsed += steps - 1
      if (!produces) continue
      sequence.produced += steps
      this.generatedTokens += steps
      if (sequence.firstTokenAt === undefined) this.#first(sequence, at)
      if (sequence.produced >= sequence.outputTokens) {
        sequence.state = 'finished'
        sequence.finishedAt = at
        finished++
      }
    }
    if (finished > 0) this.#retire()
  }

  #first(sequence: Sequence, at: number): void {
    sequence.firstTokenAt = at
    this.promptTokens += sequence.promptTokens
    this.#events.firstToken?.(sequence)
  }

  #retire(): void {
    const done = this.#running.filter((sequence) => sequence.state === 'finished')
    this.#running = this.#running.filter((sequence) => sequence.state === 'running')
    for (const sequence of done) {
      this.#release(sequence)
      this.#events.finished?.(sequence)
    }
  }

  /** Decides the step that begins at `at`; leaves none when there is nothing to run. */
  #plan(at: number): void {
    const { prefillChunk, prefillTokensPerSecond, peakTokensPerSecond, halfBatch } = this.#options
    let budget = prefillChunk
    const preemptions = this.preemptions
    for (let i = 0; i < this.#running.length; i++)
      budget -= this.#schedule(this.#running[i]!, budget)
    // vLLM admits nobody in a step that had to preempt.
    const preempted = this.preemptions > preemptions
    if (!preempted) budget = this.#admit(at, budget)

    const count = this.#running.length
    if (count === 0) {
      this.#step = undefined
      return
    }
    this.peakRunning = Math.max(this.peakRunning, count)
    let batch = 0
    let shortest = Number.POSITIVE_INFINITY
    for (const sequence of this.#running) {
      if (sequence.chunk === sequence.left) batch++
      shortest = Math.min(shortest, sequence.outputTokens - sequence.produced)
    }
    const prefill = prefillChunk - budget
    const decodeSeconds = batch > 0 ? (batch + halfBatch) / peakTokensPerSecond : 0
    const untilFull = 1 + Math.floor((this.#kvLimit - this.#kvUsed) / count)
    this.#step = {
      startedAt: at,
      duration: 1000 * (decodeSeconds + prefill / prefillTokensPerSecond),
      repeat: prefill > 0 || preempted ? 1 : Math.min(shortest, untilFull),
    }
  }

  /**
   * Reserves what a running sequence computes in the coming step, preempting from the end of the
   * running list until it fits.
   * @returns the prompt tokens it takes from the budget; decodes take none
   */
  #schedule(sequence: Sequence, budget: number): number {
    const { left } = sequence
    const chunk = left === 1 ? 1 : Math.min(left, budget)
    while (this.#kvUsed + chunk > this.#kvLimit) {
      const victim = this.#running.pop()!
      this.#preempt(victim)
      if (victim === sequence) return 0
    }
    sequence.chunk = chunk
    this.#kvUsed += chunk
    return left === 1 ? 0 : chunk
  }

  #preempt(victim: Sequence): void {
    this.#release(victim)
    victim.state = 'waiting'
    this.#waiting.add(victim)
    this.preemptions++
  }

  #admit(at: number, budget: number): number {
    let rest = budget
    while (this.#running.length < this.#options.maxNumSeqs && rest > 0) {
      const sequence = this.#waiting.peek()
      if (!sequence) break
      if (this.#kvUsed + Math.min(sequence.left, rest) > this.#kvLimit) break
      this.#waiting.take()
      this.#running.push(sequence)
      sequence.state = 'running'
      sequence.scheduledAt ??= at
      rest -= this.#schedule(sequence, rest)
    }
    return rest
  }

  #release(sequence: Sequence): void {
    this.#kvUsed -= sequence.computed + sequence.chunk
    sequence.computed = 0
    sequence.chunk = 0
  }
}

/** At least one: that the first step ends by now is known, and rounding must not deny it. */
function stepsDue(elapsed: number, duration: number, repeat: number): number {
  return Math.min(repeat, Math.max(1, Math.floor(elapsed / duration)))
}
