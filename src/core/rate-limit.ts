/** Limits hold over any window of this length, in milliseconds. */
const WINDOW = 60_000

/**
 * Requests or tokens a minute. What is spent counts for a minute from when it was spent, and what is
 * on its way counts by an estimate until its true cost is known, so that the limit holds over any
 * minute and not only from one full minute to the next.
 */
export class RateLimit {
  #limit: number
  #spent: { at: number; amount: number }[] = []
  #from = 0
  #sum = 0
  #reserved = 0

  /** @param limit per minute; infinite for none */
  constructor(limit: number) {
    this.#limit = limit
  }

  /**
   * How long to wait before `amount` may be spent, in milliseconds; 0 for now. An amount larger than
   * the whole limit waits until nothing else is left in the window.
   */
  wait(amount: number, now: number): number {
    if (this.#limit === Number.POSITIVE_INFINITY) return 0
    this.#forget(now)
    const room = this.#limit - this.#sum - this.#reserved
    if (amount <= room || this.#sum + this.#reserved === 0) return 0
    let freed = 0
    for (let i = this.#from; i < this.#spent.length; i++) {
      const { at, amount: old } = this.#spent[i]!
      freed += old
      if (amount <= room + freed) return Math.max(1, at + WINDOW - now)
    }
    // Only what is on its way takes the room: its end will tell.
    return WINDOW / 60
  }

  /** Notes something that begins and will cost about `amount`. */
  reserve(amount: number): void {
    if (this.#limit === Number.POSITIVE_INFINITY) return
    this.#reserved += amount
  }

  /** Notes the end of something that was reserved, and what it cost. */
  settle(reserved: number, amount: number, now: number): void {
    // Without a limit nothing is remembered: a minute of small requests would be a million entries.
    if (this.#limit === Number.POSITIVE_INFINITY) return
    this.#reserved -= reserved
    this.#spent.push({ at: now, amount })
    this.#sum += amount
  }

  #forget(now: number): void {
    while (this.#from < this.#spent.length && this.#spent[this.#from]!.at <= now - WINDOW) {
      this.#sum -= this.#spent[this.#from++]!.amount
    }
    if (this.#from > 4096) {
      this.#spent = this.#spent.slice(this.#from)
      this.#from = 0
    }
  }
}
