/** Bytes read in vain per byte of the file, before beginnings of objects are passed over. */
const EFFORT = 8
const EFFORT_LEAST = 4096

/** What searches spent on objects that are broken: the whole stays linear in the file. */
export class Effort {
  #spent = 0
  #begin = 0

  /** Counts bytes; returns whether they are more than what was read up to `at` allows. */
  isTooMuch(bytes: number, at: number): boolean {
    this.#spent += bytes
    return this.#spent > EFFORT * (at - this.#begin) + EFFORT_LEAST
  }

  /** Moves the offsets when the caller has moved the bytes. */
  shift(by: number): void {
    this.#begin -= by
  }
}
