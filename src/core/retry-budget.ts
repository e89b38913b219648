/** Retries are free until there are so many requests to judge by. */
const ENOUGH_TO_JUDGE = 50
/** Milliseconds between retries that are let through although the budget is used up. */
const TRICKLE = 1000

/**
 * Retries over the whole run, as a share of its requests, so that a sick server is not buried under
 * them (the retry budget of Finagle and of the Google SRE book, chapter 22). A retry beyond the budget
 * is not given up, which would lose its sample: it waits until answers have earned it, or for its
 * turn in a trickle.
 */
export class RetryBudget {
  #share: number
  #requests = 0
  #retries = 0
  #nextTrickle = 0

  /** @param share retries per request, such as 0.2 */
  constructor(share: number) {
    this.#share = share
  }

  /** Notes the first attempt of a request. */
  request(): void {
    this.#requests++
  }

  /**
   * Asks for a retry.
   *
   * @returns 0 where it may go now, else the milliseconds after which to ask again
   */
  wait(now: number): number {
    const allowed = Math.max(ENOUGH_TO_JUDGE, this.#requests) * this.#share
    if (this.#retries < allowed) {
      this.#retries++
      return 0
    }
    if (now >= this.#nextTrickle) {
      this.#nextTrickle = now + TRICKLE
      this.#retries++
      return 0
    }
    return this.#nextTrickle - now
  }
}
