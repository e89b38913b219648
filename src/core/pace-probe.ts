import type { PaceSignals } from './pace-signals.ts'

const SECOND = 1000
/** Milliseconds until the first look downwards, and between two. */
const FIRST = 120_000
const EVERY = 900_000
/** Milliseconds between two looks whether the server is shared: while it is not, and while it is. */
const SHORT_EVERY = 300_000
const SHARED_EVERY = 60_000
/** The limit while looking: two looks are less than a fifth; one request less of few would be more. */
const LOWER = 0.9
const FEWEST = 6
/** Seconds that a lower limit is kept once what is open has drained, and those that are measured. */
const KEPT = 45
const MEASURED = 30
/** To see whether requests still wait, and for the floor of the first-token times, less is enough. */
const KEPT_SHORT = 10
/** First tokens to judge by. */
const FEW = 5
/** Requests that wait so much (ms, floors) though a tenth is gone wait behind another client's. */
const SHARED_WAIT = 1000
const SHARED_FLOORS = 1.5
/** As good as before, the noise considered: the lower limit stays. */
const AS_GOOD = 1.01
/** Clearly better; and by so much that it is tried at once whether lower is better still. */
const BETTER = 1.08
const MUCH_BETTER = 1.12
/** A step back beyond this was no steady state. */
const FAR = 0.8

/** How a look downwards ended. */
export interface Probed {
  /** Whether the lower limit stays. */
  kept: boolean
  /** Fewer did clearly better. */
  better: boolean
  /** Requests waited all the same, so behind those of another client. */
  shared: boolean
  limit: number
  before: number
}

/**
 * Looks whether fewer open requests do as well: where more of them seem to have done harm, and every
 * quarter of an hour, since a server that thrashes does not say so, and since the floor of the
 * first-token times drifts into a queue that is always there.
 *
 * Where requests wait, a shorter look every few minutes tells whose queue it is: one that is there
 * with a tenth less of ours is another client's as well, and then the tenth is left to it. Each loses
 * a share and wins back what the others win, so that they end near equal parts.
 */
export class DownwardProbe {
  #signals: PaceSignals
  #nextShort = 0
  /** When the next look is one that compares rates. */
  #nextLong: number | undefined
  #before: { limit: number; rate: number } | undefined
  #limit = 0
  #drainedAt: number | undefined
  /** Whether a much better rate is followed by another look at once. */
  #goesOn = false
  /** Looks that did so much better, one after the other. */
  #inARow = 0
  /** Whether it was begun because of a growth that is doubted. */
  #doubt = false

  constructor(signals: PaceSignals) {
    this.#signals = signals
  }

  get active(): boolean {
    return this.#before !== undefined
  }

  /**
   * Gives up: something else moves the limit, or rates tell nothing.
   *
   * @returns the limit before the look
   */
  cancel(): number | undefined {
    const before = this.#before?.limit
    this.#before = undefined
    return before
  }

  /** Whether it is time to look; to be asked in steady state. */
  due(limit: number, now: number): boolean {
    this.#nextLong ??= now + FIRST
    if (limit < FEWEST) return false
    // Where nothing waits there is nothing to share.
    return now >= this.#nextLong || (now >= this.#nextShort && this.#signals.medianWaiting >= 1)
  }

  /**
   * @param lower the former limit, where the growth from it is doubted; else a tenth less is looked at
   * @param seconds over which the present rate is measured
   * @returns the limit to look at
   */
  begin(limit: number, lower?: number, seconds = MEASURED): number {
    this.#before = { limit, rate: this.#signals.delivered.over(seconds) }
    // A step back of less than a fifth, and a look at once, would be a swing of more.
    this.#goesOn = lower === undefined || lower < FAR * limit
    this.#doubt = lower !== undefined
    this.#drainedAt = undefined
    this.#limit = Math.min(limit - 1, lower ?? Math.ceil(LOWER * limit))
    return this.#limit
  }

  /** @returns undefined while it looks */
  second(now: number, open: number): Probed | undefined {
    const { limit, rate } = this.#before!
    const { delivered, floor, lately } = this.#signals
    if (this.#drainedAt === undefined) {
      if (open > this.#limit) return undefined
      this.#drainedAt = now
      this.#signals.lately = []
      return undefined
    }
    const { known } = delivered
    const due = this.#doubt || now >= this.#nextLong!
    const long = known && due
    const quiet = (now - this.#drainedAt) / SECOND
    if (quiet < KEPT_SHORT || (lately.length < FEW && quiet < KEPT)) return undefined
    const shared = !this.#doubt && medianOf(lately) > SHARED_WAIT + SHARED_FLOORS * floor.value
    if (!shared && long && quiet < KEPT) return undefined
    this.#before = undefined
    const now30 = delivered.over(MEASURED)
    const better = !shared && long && now30 > BETTER * rate
    const again = better && this.#goesOn && now30 > MUCH_BETTER * rate
    if (due && !shared) this.#nextLong = now + this.#pauseAfter(again)
    this.#nextShort = now + (shared ? SHARED_EVERY : SHORT_EVERY)
    const kept = shared || (long && now30 >= AS_GOOD * rate)
    return { kept, better, shared, limit: this.#limit, before: limit }
  }

  /** Milliseconds until the next look: two that follow at once are less than a fifth, three are more. */
  #pauseAfter(again: boolean): number {
    this.#inARow = again ? this.#inARow + 1 : 0
    if (!again) return EVERY
    return this.#inARow % 2 === 1 ? 0 : SHORT_EVERY
  }
}

/** One first token of many may take long for reasons of its own. */
function medianOf(values: readonly number[]): number {
  return values.toSorted((a, b) => a - b)[Math.floor(values.length / 2)] ?? 0
}
