/** A limit that proved too high is not tried again for so long (ms); twice as long each time. */
const AFTER_REFUSAL = 300_000
const AFTER_HARM = 600_000
const LONGEST = 1_800_000
const AFTER_PREEMPTIONS = 150_000

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

  /** @param again whether the next time is to be longer */
  harmed(limit: number, now: number, again: boolean): void {
    this.#set(Math.round(limit), now + (again ? this.#harmFor : AFTER_REFUSAL))
    if (again) this.#harmFor = Math.min(LONGEST, 2 * this.#harmFor)
  }

  #set(limit: number, until: number): void {
    this.#limit = limit
    this.#until = until
  }
}
