import type { TokenRate } from './pace-rate.ts'

const SECOND = 1000
/** Milliseconds until the first look downwards, and between two. */
const FIRST = 120_000
const EVERY = 900_000
/** The limit while looking: two looks are less than a fifth; one request less of few would be more. */
const LOWER = 0.9
const FEWEST = 6
/** Seconds that a lower limit is kept once what is open has drained, and those that are measured. */
const KEPT = 45
const MEASURED = 30
/** Without a count of tokens it is only for the floor of the first-token times. */
const KEPT_FOR_FLOOR = 10
/** As good as before, the noise considered: the lower limit stays. */
const AS_GOOD = 1.01
/** Clearly better; and by so much that it is tried at once whether lower is better still. */
const BETTER = 1.08
const MUCH_BETTER = 1.12
/** A step back beyond this was no steady state. */
const FAR = 0.8

/** How a look downwards ended; `better`: fewer did clearly better. */
export type Probed = { kept: boolean; better: boolean; limit: number; before: number }

/**
 * Looks whether fewer open requests do as well: where more of them seem to have done harm, and every
 * quarter of an hour, since a server that thrashes does not say so, and since the floor of the first-token times drifts into a queue that is always there.
 */
export class DownwardProbe {
  #delivered: TokenRate
  #next: number | undefined
  #before: { limit: number; rate: number } | undefined
  #limit = 0
  #drainedAt: number | undefined
  /** Whether a much better rate is followed by another look at once. */
  #goesOn = false

  constructor(delivered: TokenRate) {
    this.#delivered = delivered
  }

  get active(): boolean {
    return this.#before !== undefined
  }

  /** Gives up: something else has moved the limit. */
  cancel(): void {
    this.#before = undefined
  }

  /** Whether it is time to look; to be asked in steady state. */
  due(limit: number, now: number): boolean {
    this.#next ??= now + FIRST
    return limit >= FEWEST && now >= this.#next
  }

  /**
   * @param lower the former limit, where the growth from it is doubted; else a tenth less is looked at
   * @param seconds over which the present rate is measured
   * @returns the limit to look at
   */
  begin(limit: number, lower?: number, seconds = MEASURED): number {
    this.#before = { limit, rate: this.#delivered.over(seconds) }
    // A step back of less than a fifth, and a look at once, would be a swing of more.
    this.#goesOn = lower === undefined || lower < FAR * limit
    this.#drainedAt = undefined
    this.#limit = Math.min(limit - 1, lower ?? Math.ceil(LOWER * limit))
    return this.#limit
  }

  /** @returns undefined while it looks */
  second(now: number, open: number): Probed | undefined {
    const { limit, rate } = this.#before!
    if (open <= this.#limit) this.#drainedAt ??= now
    const { known } = this.#delivered
    const kept = known ? KEPT : KEPT_FOR_FLOOR
    if (this.#drainedAt === undefined || now - this.#drainedAt < kept * SECOND) return undefined
    const now30 = this.#delivered.over(MEASURED)
    const better = known && now30 > BETTER * rate
    this.#next = now + (known && this.#goesOn && now30 > MUCH_BETTER * rate ? 0 : EVERY)
    this.#before = undefined
    return { kept: known && now30 >= AS_GOOD * rate, better, limit: this.#limit, before: limit }
  }
}
