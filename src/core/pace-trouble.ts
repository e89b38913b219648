const MINUTE = 60_000
/** So many 429 in a minute are of the number of open requests all the same; and the deepest cut. */
const PERSISTENT = 4
const DEEP = 0.15
/**
 * This many preemptions, and this many for each completion in three minutes, cost more than the
 * slots they come of are worth; in a minute it may be as many because long answers happen to run,
 * up to this many.
 */
const FEWEST = 5
const MOST_EACH = 0.6
const MOST_EACH_AT_ONCE = 2
const MEAN_OVER = 3 * MINUTE
/** Seconds that a mean may be short of: looks come a second apart, more or less. */
const NEARLY = 0.9

/** Outcomes of late by which a 429 is judged. */
const OUTCOMES = 8
const FEWEST_REFUSED = 3

/** Counts 429 answers: how many requests may stay open. */
export class Refusals {
  #at: number[] = []
  /** Whether requests were taken, and how many were open when they were sent; the newest last. */
  #outcomes: { beside: number; taken: boolean }[] = []

  taken(beside: number): void {
    this.#note(beside, true)
  }

  /**
   * Takes a 429, and tells whether it is not of the number of open requests: of the last requests
   * that were sent beside as many or more, most were taken, or not so many were refused.
   */
  isByChance(beside: number): boolean {
    this.#note(beside, false)
    const alike = this.#outcomes.filter((one) => one.beside >= beside).slice(-OUTCOMES)
    const refused = alike.filter(({ taken }) => !taken).length
    return refused < FEWEST_REFUSED || refused < alike.length / 2
  }

  #note(beside: number, taken: boolean): void {
    this.#outcomes.push({ beside, taken })
    if (this.#outcomes.length > 16 * OUTCOMES) this.#outcomes.shift()
  }

  /**
   * A server that counts open requests refuses at once what is too many. One that refuses later, and
   * does not go on, counts something else, such as requests a minute.
   *
   * @param accepted requests that were open beside the one that was refused
   * @param risen whether the limit has risen lately
   * @returns undefined where the limit is not to blame
   */
  bound(accepted: number, limit: number, risen: boolean, now: number): number | undefined {
    this.#at = [...this.#at.filter((at) => now - at < MINUTE), now]
    const times = this.#at.length
    if (!risen) return times < PERSISTENT ? undefined : (1 - DEEP) * limit
    // Where the place of what is refused is taken at once, what is open does not tell how many are
    // too many: twice as many each time.
    return Math.min(accepted, limit - Math.min(2 ** (times - 1), Math.max(1, DEEP * limit)))
  }
}

/** Preemptions: how many a minute, and for each completion. */
interface Preempted {
  perMinute: number
  each: number
}

/** The preemptions of late, as the server counts them or as streams that stood still. */
export class Preemptions {
  #window: { at: number; total: number; completed: number }[] = []
  #told = false

  /**
   * Takes the second's counts.
   * @param told the server's counter, once it has told one the only source
   * @returns undefined while there are few
   */
  second(
    now: number,
    told: number | undefined,
    stalls: number,
    completed: number,
  ): Preempted | undefined {
    if (told !== undefined && !this.#told) {
      this.#told = true
      this.#window = []
    }
    if (this.#told && told === undefined) return undefined
    const total = told ?? stalls
    this.#window.push({ at: now, total, completed })
    // A counter that falls is that of a server which has started again.
    if (total < (this.#window.at(-2)?.total ?? 0)) this.forget()
    while (this.#window.length > 0 && now - this.#window[0]!.at > MEAN_OVER) this.#window.shift()
    const lately = this.#since(now - MINUTE, MOST_EACH_AT_ONCE)
    if (lately !== undefined || now - (this.#window[0]?.at ?? now) < NEARLY * MEAN_OVER)
      return lately
    return this.#since(now - MEAN_OVER, MOST_EACH)
  }

  /** Those since then, where they are more for each completion. */
  #since(then: number, most: number): Preempted | undefined {
    const first = this.#window.find(({ at }) => at >= then)
    const last = this.#window.at(-1)
    if (first === undefined || last === undefined) return undefined
    const count = last.total - first.total
    const each = count / Math.max(1, last.completed - first.completed)
    if (count < FEWEST || each <= most) return undefined
    return { perMinute: (count * MINUTE) / (last.at - first.at), each }
  }

  forget(): void {
    this.#window = []
  }
}

/** Seconds over which the habit is formed, and how far a limit may go from it. */
const HABIT = 600
const LEAST = 0.9
const MOST = 1.07

/**
 * The limit that a full KV cache has been worked with: how full it is wavers with the lengths of the
 * answers that happen to run, and a limit that follows that is always late.
 */
export class Habit {
  #limit: number | undefined

  /** To be called every second: whether the cache is what limits, and no cut is being done. */
  second(limit: number, pressed: boolean): void {
    if (!pressed) this.#limit = undefined
    else if (this.#limit !== undefined) this.#limit += (limit - this.#limit) / HABIT
  }

  /** A limit has proved possible. */
  begin(limit: number): void {
    this.#limit ??= limit
  }

  bound(limit: number): number {
    if (this.#limit === undefined) return limit
    return Math.min(MOST * this.#limit, Math.max(LEAST * this.#limit, limit))
  }
}
