/** Seconds that are remembered. */
const MEMORY = 60
/** Seconds of the mean against which a standstill shows, and the share of it that is none. */
const USUAL = 30
const STANDSTILL = 0.1

/**
 * Delivered tokens a second over the last seconds. Those in which nothing comes are left out: a long
 * prompt that is being prefilled stops all answers for a while, and of how many requests are open
 * that tells nothing.
 */
export class TokenRate {
  /** Nothing comes at the moment, though answers were coming. */
  stands = false
  /** In milliseconds without those that were left out. */
  #samples: { at: number; tokens: number }[] = []
  #lastAt = 0
  #leftOut = 0

  /** To be called every second; without a count there is no rate. */
  add(at: number, tokens: number | undefined): void {
    const elapsed = at - this.#lastAt
    this.#lastAt = at
    this.stands = this.#isStandstill(tokens, elapsed)
    if (tokens === undefined) this.#samples = []
    else if (this.stands) this.#leftOut += elapsed
    else this.#samples.push({ at: at - this.#leftOut, tokens })
    if (this.#samples.length > MEMORY + 1) this.#samples.shift()
  }

  #isStandstill(tokens: number | undefined, elapsed: number): boolean {
    const last = this.#samples.at(-1)
    if (tokens === undefined || last === undefined) return false
    return (1000 * (tokens - last.tokens)) / Math.max(1, elapsed) < STANDSTILL * this.over(USUAL)
  }

  get known(): boolean {
    return this.#samples.length > 1
  }

  /**
   * The mean of the rates over this many seconds and over one and two fewer: a server hands out
   * tokens in steps, and a step more or less at an end is much of a short time.
   */
  over(seconds: number): number {
    const last = this.#samples.at(-1)
    if (last === undefined || this.#samples.length < 2) return 0
    let sum = 0
    for (const shorter of [0, 1, 2]) {
      const back = Math.max(1, Math.min(seconds - shorter, this.#samples.length - 1))
      const first = this.#samples[this.#samples.length - 1 - back]!
      sum += (last.tokens - first.tokens) / Math.max(1, last.at - first.at)
    }
    return (1000 * sum) / 3
  }
}
