/** First-token times per median: one quick answer from a cache is no floor. */
const MEDIAN_OF = 5
/** The floor is the least median of so many parts of so many milliseconds. */
const PART = 300_000
const PARTS = 8

/**
 * What a first token takes at a server without a queue, in milliseconds. The least of the last 40
 * minutes: so it follows a server that became slower, and does not drift into a queue that is always
 * there as long as the limit is lowered for a moment every quarter of an hour.
 */
export class FirstTokenFloor {
  #times: number[] = []
  #parts: { from: number; least: number }[] = []
  #now = 0

  /** Infinite before the first times are known. */
  get value(): number {
    return Math.min(...this.#parts.map(({ least }) => least))
  }

  add(ms: number): void {
    this.#times.push(ms)
    if (this.#times.length < MEDIAN_OF) return
    const median = this.#times.toSorted((a, b) => a - b)[(MEDIAN_OF - 1) / 2]!
    this.#times = []
    const part = this.#parts.at(-1)
    if (part !== undefined && this.#now - part.from < PART) {
      part.least = Math.min(part.least, median)
      return
    }
    this.#parts.push({ from: this.#now, least: median })
    if (this.#parts.length > PARTS) this.#parts.shift()
  }

  advance(now: number): void {
    this.#now = now
  }
}
