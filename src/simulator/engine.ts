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
  #stopped = false

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
    if (this.#timer === undefined) this.#arm(TICK_MS)
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
    this.#stopped = true
    clearTimeout(this.#timer)
  }

  #tick(): void {
    const begun = performance.now()
    const now = this.#clock.now()
    this.scheduler.advance(now)
    let lagging = false
    for (const job of this.#jobs) {
      if (job.pump(now)) lagging = true
    }
    // After the writes, which responses put off to the end of this turn of the loop.
    process.nextTick(() => {
      const pause = Math.max(TICK_MS, performance.now() - begun)
      this.#arm(pause, lagging ? pause : Number.POSITIVE_INFINITY)
    })
  }

  /**
   * Sets the timer for the end of the next step, within limits in wall time.
   * @param atLeast the pause that everything else gets. As long as the tick was: were ticks to follow
   *   each other, one connection would be accepted between two (libuv takes one a turn), and 2,000
   *   clients of a busy server would need a minute to get in
   */
  #arm(atLeast: number, atMost = Number.POSITIVE_INFINITY): void {
    if (this.#stopped) return
    const stepAt = this.scheduler.nextStepAt ?? Number.POSITIVE_INFINITY
    const step = this.#clock.toWall(stepAt - this.#clock.now())
    const wait = Math.ceil(Math.max(atLeast, Math.min(step, atMost)))
    this.#timer = Number.isFinite(wait) ? setTimeout(() => this.#tick(), wait) : undefined
  }
}
