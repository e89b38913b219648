/** A limit that proved too high is not tried again for so long (ms); twice as long each time. */
const AFTER_REFUSAL = 300_000
const AFTER_HARM = 600_000
const LONGEST = 1_800_000
const AFTER_PREEMPTIONS = 150_000

/** The part of a growth that may be tried again: where much was lost by it, and where little was. */
const AFTER_LOSS = 0.15
const AFTER_DOUBT = 0.3
/** Where fewer did better by themselves, the limit does not quite go back. */
const NEARLY = 0.97

/** A lower limit that did as well, the one before, and whether it did clearly better. */
interface Look {
  limit: number
  before: number
  better: boolean
}

/** What the limit does not go beyond for a while. */
export class Ceiling {
  #limit = Number.POSITIVE_INFINITY
  #until = 0
  #refusalFor = AFTER_REFUSAL
  #harmFor = AFTER_HARM

  at(now: number): number {
    return now > this.#until ? Number.POSITIVE_INFINITY : this.#limit
  }

  refused(limit: number, now: number): void {
    this.#set(limit, now + this.#refusalFor)
    this.#refusalFor = Math.min(LONGEST, 2 * this.#refusalFor)
  }

  preempted(limit: number, now: number): void {
    this.#set(limit, now + AFTER_PREEMPTIONS)
  }

  /**
   * A look downwards has ended with a lower limit that stays.
   * @param doubted it was begun because the last growth seemed to have done harm
   */
  looked({ limit, before, better }: Look, doubted: boolean, now: number): void {
    if (doubted) {
      const again = better ? AFTER_LOSS : AFTER_DOUBT
      this.#set(Math.round(limit + again * (before - limit)), now + this.#harmFor)
      this.#harmFor = Math.min(LONGEST, 2 * this.#harmFor)
    } else {
      const most = better ? Math.max(limit, NEARLY * before) : before
      this.#set(Math.round(most), now + AFTER_REFUSAL)
    }
  }

  #set(limit: number, until: number): void {
    this.#limit = limit
    this.#until = until
  }
}
