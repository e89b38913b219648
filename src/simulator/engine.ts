import type { Clock } from './clock.ts'
import type { Scheduler } from './scheduler.ts'
import type { Sequence, SequenceSpec } from './sequence.ts'

/** One answer that is being made and sent. */
export interface Job {
  readonly sequence: Sequence
  /**
   * Sends what has come due.
   * @param now server time
   * @returns whether something is ready that has to be sent later: a slow answer, a client that
   *   does not read
   */
  pump(now: number): boolean
}

/**
 * Shortest pause between two ticks, in wall time. Tokens that come due within one go out as one
 * write per connection; a real server's tokens of one step arrive as closely together.
 */
const TICK_MS = 4

/** Drives the scheduler and all answers with one timer, which is off while there is nothing to do. */
export class Engine {
  readonly scheduler: Scheduler
  readonly #clock: Clock
  readonly #jobs = new Set<Job>()
  #timer: NodeJS.Timeout | undefined

  constructor(scheduler: Scheduler, clock: Clock) {
    this.scheduler = scheduler
    this.#clock = clock
  }

  /** Output tokens of answers whose outcome is open. */
  get tokensInFlight(): number {
    let tokens = 0
    for (const { sequence } of this.#jobs) tokens += sequence.produced
    return tokens
  }

  /** Queues a sequence and makes the job that sends it. */
  open<T extends Job>(spec: SequenceSpec, makeJob: (sequence: Sequence) => T): T {
    const job = makeJob(this.scheduler.add(spec, this.#clock.now()))
    this.#jobs.add(job)
    if (this.#timer === undefined) this.#arm(false, 0)
    return job
  }

  /** Ends a job whatever its state; an unfinished sequence is aborted. */
  close(job: Job): void {
    this.scheduler.abort(job.sequence, this.#clock.now())
    this.#jobs.delete(job)
  }

  /** Brings the scheduler up to the present, for whoever reads its numbers. */
  refresh(): void {
    this.scheduler.advance(this.#clock.now())
  }

  stop(): void {
    clearTimeout(this.#timer)
    this.#timer = undefined
  }

  #tick(): void {
    const begun = performance.now()
    const now = this.#clock.now()
    this.scheduler.advance(now)
    let lagging = false
    for (const job of this.#jobs) {
      if (job.pump(now)) lagging = true
    }
    this.#arm(lagging, performance.now() - begun)
  }

  /**
   * @param busy how long the tick took, in wall time. Node counts timers from the beginning of the
   *   loop's turn: without it, long ticks would follow each other at once, with one accepted
   *   connection between them (libuv accepts one a turn), and 2,000 clients took a minute to get in
   */
  #arm(lagging: boolean, busy: number): void {
    const stepAt = this.scheduler.nextStepAt ?? Number.POSITIVE_INFINITY
    const step = this.#clock.toWall(stepAt - this.#clock.now())
    const wait = lagging ? TICK_MS : Math.max(TICK_MS, step)
    this.#timer = Number.isFinite(wait)
      ? setTimeout(() => this.#tick(), Math.ceil(wait + busy))
      : undefined
  }
}
