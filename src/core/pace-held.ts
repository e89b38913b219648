/** Fewer open than this share of the limit, for so many seconds, though there are requests to send. */
const SHARE = 0.9
const SECONDS = 3
/** Milliseconds: what counts the requests of a minute lets the next ones go in the next. */
const HELD_FOR = 90_000

/**
 * Whether something else than the limit holds requests back, such as a provider that counts the
 * requests of a minute: then what is delivered tells nothing of the limit.
 */
export class HeldBack {
  #seconds = 0
  #until = 0

  /** To be called every second. */
  second(open: number, limit: number, now: number): boolean {
    this.#seconds = open < SHARE * limit - 1 ? this.#seconds + 1 : 0
    if (this.#seconds >= SECONDS) this.#until = now + HELD_FOR
    return now < this.#until
  }
}
