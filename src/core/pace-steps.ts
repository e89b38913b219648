const SECOND = 1000

/** Growth of the limit per step in steady state, as a share of it. */
const CAREFUL = 0.03
const MEDIUM = 0.12
const BOLD = 0.25
/** Milliseconds between two steps; after steps into a queue up to eight times that. */
const EVERY = 15 * SECOND
const LONGEST = 120 * SECOND
/** After a growth that gained little: so slowly that the limit does not swing by a fifth. */
const PLAIN_EVERY = 300 * SECOND
/** Careful steps after a 429 or a preemption. */
const CAREFUL_STEPS = 8

/** A step is at most so many seconds' worth of first tokens; or of turnover where a queue is likely. */
const BOLD_SECONDS = 10
const CAREFUL_SECONDS = 5

/**
 * How much a step may be at most: if all of it had to wait, it would not wait long.
 *
 * @param size of the step, as a share of the limit
 * @param plain whether growth gains little
 */
export function mostOf(
  size: number,
  plain: boolean,
  { meanRate, turnover }: { meanRate: number; turnover: number },
): number {
  const bold = size > CAREFUL || plain
  return Math.max(1, bold ? BOLD_SECONDS * meanRate : CAREFUL_SECONDS * turnover)
}

/** How large the next step up in steady state is, and when it may be taken. */
export class GrowthSteps {
  #growth = BOLD
  #careful = 0
  #every = EVERY
  #next = 0
  #gentleUntil = 0

  due(now: number): boolean {
    return now >= this.#next
  }

  /** The next step is small. */
  slow(): void {
    this.#growth = CAREFUL
  }

  /** Trouble came of too high a limit: several steps are small and far between. */
  careful(): void {
    this.#careful = CAREFUL_STEPS
  }

  /** Steps stay small for a time. */
  gentle(until: number): void {
    this.#gentleUntil = until
  }

  /** A step went into a queue: the next into the same one can wait. */
  metQueue(now: number): void {
    this.#every = Math.min(LONGEST, 2 * this.#every)
    this.#growth = CAREFUL
    this.#next = now + this.#every
  }

  /** A growth gained little: the next one can wait. */
  gainedLittle(now: number): void {
    this.#growth = CAREFUL
    this.#next = now + PLAIN_EVERY
  }

  /** The limit has moved for another reason. */
  pause(now: number): void {
    this.#next = Math.max(this.#next, now + EVERY)
  }

  /**
   * The size of a step that is taken now, as a share of the limit.
   *
   * @param pressed whether the KV cache is what limits
   * @param half whether it is half full
   * @param plain whether growth gains little
   */
  take(
    now: number,
    { pressed, half, plain }: { pressed: boolean; half: boolean; plain: boolean },
    meanLatency: number,
  ): number {
    const careful = this.#careful > 0 || pressed
    const size = careful ? CAREFUL : half ? Math.min(MEDIUM, this.#growth) : this.#growth
    // A step that met no queue: the next may be larger, and need not wait so long.
    if (size > CAREFUL) this.#every = EVERY
    this.#growth = now < this.#gentleUntil || plain ? CAREFUL : Math.min(BOLD, 2 * size)
    if (this.#careful > 0) this.#careful--
    this.#next = now + Math.max(EVERY, careful ? Math.min(LONGEST, meanLatency) : 0)
    return size
  }
}
