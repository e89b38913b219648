import { note } from './recent.ts'

/** Seconds over which the filling is measured, and for which it is foreseen: at once, and slowly. */
const WINDOW = 4
const FORESIGHT = 20
const LONG_WINDOW = 14
/**
 * The long answers that fill a cache last longer than the mean of those that have ended so far: so
 * many times. (1.3 is too few in some runs of the laboratory, from 2 on it stops too early.)
 */
const LATENCIES = 1.7
/** What was foreseen counts so long (s): how fast a cache fills wavers with the answers that end. */
const REMEMBERED = 30
/** Seconds after which a cache is not believed that stands still. */
const STANDSTILL = 10

/**
 * How full the KV cache is going to be. It is as full as a limit makes it only when the answers have
 * grown, after a mean latency and more: too late for a ramp. Shares, 0 where nothing is told.
 */
export class CacheOutlook {
  /** A few seconds from now, as it fills at present. */
  soon = 0
  /** When the answers that are open now have grown: the most that was foreseen lately. */
  later = 0

  #still = 0
  #shares: number[] = []
  #foreseen: number[] = []

  /**
   * To be called every second.
   * @param share how full it is; 0 where that is not told
   * @param meanLatency milliseconds
   */
  second(share: number, meanLatency: number): void {
    // No cache stays as full to the last digit while requests come and go: it is none of ours.
    this.#still = share > 0 && share === this.#shares.at(-1) ? this.#still + 1 : 0
    note(this.#shares, share, LONG_WINDOW + 1)
    const horizon = Math.max(FORESIGHT, (LATENCIES * meanLatency) / 1000)
    note(this.#foreseen, share + horizon * this.#filling(LONG_WINDOW), REMEMBERED)
    const isBelieved = this.#still <= STANDSTILL
    this.soon = isBelieved ? share + FORESIGHT * this.#filling(WINDOW) : 0
    this.later = isBelieved ? Math.max(...this.#foreseen) : 0
  }

  /** What it fills by each second; 0 where it empties. */
  #filling(window: number): number {
    const seconds = Math.min(window, this.#shares.length - 1)
    if (seconds < 1) return 0
    return Math.max(0, (this.#shares.at(-1)! - this.#shares.at(-1 - seconds)!) / seconds)
  }
}
