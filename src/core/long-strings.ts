/** Strings up to this many bytes are as soon read again as looked up. */
export const LONG_STRING = 256
/** Of one value so many are kept; what comes behind them is read again. */
const KEPT = 32

/**
 * Where the long strings of the value lie that the scanner has read last, in its order, so that a
 * reader that goes through the value again need not read them: they are most of its bytes.
 */
export class LongStrings {
  #starts = new Int32Array(KEPT)
  #ends = new Int32Array(KEPT)
  #count = 0
  /** The first one that was not passed over yet. */
  #next = 0

  /** Forgets the value before. */
  clear(): void {
    this.#count = 0
    this.#next = 0
  }

  /** Takes a string token, its quotes included. */
  add(start: number, end: number): void {
    if (this.#count === KEPT) return
    this.#starts[this.#count] = start
    this.#ends[this.#count] = end
    this.#count++
  }

  /** Takes the strings of a whole value, their begins and ends in turn. */
  take(places: Int32Array, count: number): void {
    for (let i = 0; i < count; i++) {
      this.#starts[i] = places[2 * i]!
      this.#ends[i] = places[2 * i + 1]!
    }
    this.#count = count
    this.#next = 0
  }

  /** The offset behind the string that begins at `start`; -1 where it is none of these. */
  endOf(start: number): number {
    const starts = this.#starts
    let next = this.#next
    if (next > 0 && starts[next - 1]! >= start) next = 0
    while (next < this.#count && starts[next]! < start) next++
    this.#next = next
    return next < this.#count && starts[next] === start ? this.#ends[next]! : -1
  }
}
