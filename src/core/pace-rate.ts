/** Seconds that are remembered. */
const MEMORY = 60

/** Delivered tokens a second over the last seconds. */
export class TokenRate {
  #samples: { at: number; tokens: number }[] = []

  /** To be called every second; without a count there is no rate. */
  add(at: number, tokens: number | undefined): void {
    if (tokens === undefined) {
      this.#samples = []
      return
    }
    this.#samples.push({ at, tokens })
    if (this.#samples.length > MEMORY + 1) this.#samples.shift()
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
