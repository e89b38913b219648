import type { TokenRate } from './pace-rate.ts'

const SECOND = 1000

/** How a growth is tried: by which factor, how long it settles and is measured (seconds). */
interface Trial {
  factor: number
  settle: number
  measure: number
}

const RAMP: Trial = { factor: 2, settle: 1, measure: 4 }
const STEADY: Trial = { factor: 1.5, settle: 5, measure: 25 }
/** Once growth has gained little: with a look downwards still no swing of a fifth. */
const PLAIN: Trial = { ...STEADY, factor: 1.08 }
const SOON = { settle: 3, measure: 11 }
/** Seconds of standing still after which a limit is what the next growth is compared with. */
const REST = 120
/** A smaller growth cannot be to blame for a loss that can be told from noise. */
const NOTABLE = 1.05
/** Loss after a step that is more than the wavering of rates. */
const CLEAR = 0.07
/** Below this limit the ramp is not held up: what it could harm is soon undone. */
const HARMLESS = 64
/** Loss (in three seconds) that interrupts the ramp. */
const CLEAR_LOSS = 0.2
/**
 * A doubling that gains less has found the flat part of the curve; one that loses so much, the end.
 * Rates waver by 3 %: where 10 % were demanded, the search sometimes ended at a fifth of the best.
 */
const FLAT = 0.02
const LOST = 0.05
/** A growth in steady state that gains less of itself has gained little, and one that has: much. */
const LITTLE = 0.15
const MUCH = 1

/** grow: go on. wait: not known yet. flat: little was gained. Else the limit to go back to. */
export type Verdict = 'grow' | 'wait' | 'flat' | { backTo: number }

/**
 * Whether more open requests harm the throughput. Rates waver by some per cent, so that a gain cannot
 * be demanded of every step: only a loss ends the growth.
 */
export class GrowthTrial {
  #delivered: TokenRate
  #base: { limit: number; rate: number } | undefined
  #changedAt = Number.NEGATIVE_INFINITY
  #judged = false
  /** Growth has gained little and met no queue: so there is no hurry. */
  plain = false
  /** What the last doubling of the limit gained. */
  lastGain = 1

  constructor(delivered: TokenRate) {
    this.#delivered = delivered
  }

  /** The limit has changed, or more is still open than it allows. */
  changed(now: number): void {
    this.#changedAt = now
    this.#judged = false
  }

  /** What was measured is worth nothing any more. */
  forget(): void {
    this.#base = undefined
  }

  /** Seconds since the limit changed. */
  quiet(now: number): number {
    return (now - this.#changedAt) / SECOND
  }

  /** Whether a limit, now that it is used up, may grow. */
  judge(limit: number, now: number, ramping: boolean): Verdict {
    if (!this.#delivered.known || (ramping && limit < HARMLESS)) return 'grow'
    const { factor, settle, measure } = ramping ? RAMP : this.plain ? PLAIN : STEADY
    const small = this.#base !== undefined && limit < factor * this.#base.limit
    if (small && !(ramping && this.#seemsLess(limit))) {
      // Harm leads back to where it stood long, and not to where it stood long ago.
      const rested = !ramping && this.quiet(now) >= REST
      if (rested) this.#base = { limit, rate: this.#delivered.over(measure) }
      return 'grow'
    }
    if (this.quiet(now) < settle + measure) return 'wait'
    let rate = this.#delivered.over(measure)
    const base = this.#base
    if (ramping && base !== undefined && rate < (1 - LOST) * base.rate) {
      // The prefills of a growth cost tokens for a while: a loss is measured longer than a gain.
      if (this.quiet(now) < SOON.settle + SOON.measure) return 'wait'
      rate = this.#delivered.over(SOON.measure)
    }
    this.#base = { limit, rate }
    if (base === undefined) return 'grow'
    const gain = rate / base.rate - 1
    const growth = limit / base.limit - 1
    this.lastGain = gain / growth
    if (gain < (ramping ? -LOST : -0.25 * growth)) return { backTo: base.limit }
    if (ramping) return this.lastGain < FLAT ? 'flat' : 'grow'
    this.plain = this.lastGain < (this.plain ? MUCH : LITTLE)
    return this.plain ? 'flat' : 'grow'
  }

  /** A loss that may as well be a burst of prefills: reason enough to wait and measure. */
  #seemsLess(limit: number): boolean {
    const base = this.#base
    if (base === undefined || limit < 1.2 * base.limit) return false
    return this.#delivered.over(3) < (1 - CLEAR_LOSS) * base.rate
  }

  /** Once after each step in steady state: the limit to go back to where it did clear harm. */
  harm(limit: number, now: number): number | undefined {
    const base = this.#base
    if (this.#judged || base === undefined || limit < NOTABLE * base.limit) return undefined
    if (this.quiet(now) < SOON.settle + SOON.measure) return undefined
    this.#judged = true
    const allowed = Math.max(CLEAR, 0.25 * (limit / base.limit - 1))
    return this.#delivered.over(SOON.measure) < (1 - allowed) * base.rate ? base.limit : undefined
  }
}
