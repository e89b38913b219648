import { LooseGrammar } from '../../core/loose-grammar.ts'

/** An element that goes on for so many bytes is checked before its end is known. */
const UNIT = 64 * 1024
/** The same where damage was noticed late. */
const CAREFUL = 64
/** Damage is noticed late where so many bytes, and times its own, were read beyond it. */
const LATE = 4096
const LATE_TIMES = 16

/**
 * Notices that an element is broken before its brackets end, which a lost quote or brace may put at
 * the end of the file. Bytes that were read beyond damage are read again: so many that follow are
 * checked often, which keeps the whole linear. When is decided by the bytes alone.
 */
export class ElementWatch {
  /** Where the splitter has to stop for a check. */
  stop = UNIT
  #careful = 0
  #swallowed = 0
  #start = -1
  #fed = 0
  #grammar = new LooseGrammar()

  /** Another element may begin from `at` on. */
  begin(at: number): void {
    this.#start = -1
    this.stop = at + this.#unit(at)
  }

  /** Whether the brackets of the element from `start`, read up to `at`, can no longer be trusted. */
  isBroken(bytes: Buffer, start: number, at: number): boolean {
    if (at < this.stop) return false
    this.stop = at + Math.max(this.#unit(at), at - start)
    return this.#isOffended(bytes, start, at)
  }

  /** The same at the end of the file. */
  isBrokenAtEnd(bytes: Buffer, start: number, end: number): boolean {
    return this.#isOffended(bytes, start, end)
  }

  /** Whether damage before swallowed what stands here. */
  wasSwallowed(at: number): boolean {
    return at < this.#swallowed
  }

  /** Nothing to check here. */
  pass(at: number): void {
    if (at >= this.stop) this.stop = at + this.#unit(at)
  }

  /**
   * Damage from `start` to `end` was noticed at `at`.
   *
   * @param isSwallowed nothing was wrong up to there: elements were taken for those of a list inside
   */
  noticed(start: number, end: number, at: number, isSwallowed: boolean): void {
    if (at - end <= LATE + LATE_TIMES * (end - start)) return
    this.#careful = Math.max(this.#careful, at)
    if (isSwallowed) this.#swallowed = Math.max(this.#swallowed, at)
  }

  /** Moves the offsets when the caller has moved the bytes. */
  shift(by: number): void {
    this.stop -= by
    this.#careful -= by
    this.#swallowed -= by
    if (this.#start >= 0) this.#start -= by
    this.#fed -= by
  }

  #isOffended(bytes: Buffer, start: number, end: number): boolean {
    if (this.#start !== start) {
      this.#start = start
      this.#fed = start
      this.#grammar = new LooseGrammar()
    }
    const offence = this.#grammar.feed(bytes, this.#fed, end)
    this.#fed = end
    return offence >= 0
  }

  #unit(at: number): number {
    return at < this.#careful ? CAREFUL : UNIT
  }
}
