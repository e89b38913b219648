/** Bins at most: memory does not grow with the run. */
const MOST = 120

/**
 * Sums over time in bins of one width, which doubles when they become too many; times may come in any
 * order.
 */
export class TimeBins {
  /** Milliseconds; always a power of two of seconds. */
  width = 1000
  #fields: number
  #bins = new Map<number, Float64Array>()
  #first = Number.POSITIVE_INFINITY
  #last = Number.NEGATIVE_INFINITY

  /** @param fields how many sums each bin has */
  constructor(fields: number) {
    this.#fields = fields
  }

  /** Adds to the bin of a moment (milliseconds since 1970). */
  add(at: number, field: number, amount: number): void {
    this.#include(at)
    this.#bin(Math.floor(at / this.width))[field]! += amount
  }

  /** Spreads an amount evenly from one moment to another. */
  spread(from: number, to: number, field: number, amount: number): void {
    if (!(to > from)) {
      this.add(from, field, amount)
      return
    }
    this.#include(from)
    this.#include(to)
    const perMs = amount / (to - from)
    for (let at = from; at < to; ) {
      const index = Math.floor(at / this.width)
      const end = Math.min(to, (index + 1) * this.width)
      this.#bin(index)[field]! += (end - at) * perMs
      at = end
    }
  }

  /** Every bin from the first to the last that holds something, in order. */
  list(): { at: number; sums: Float64Array }[] {
    const bins: { at: number; sums: Float64Array }[] = []
    for (let index = this.#first; index <= this.#last; index++) {
      const sums = this.#bins.get(index) ?? new Float64Array(this.#fields)
      bins.push({ at: index * this.width, sums })
    }
    return bins
  }

  #include(at: number): void {
    const index = Math.floor(at / this.width)
    this.#first = Math.min(this.#first, index)
    this.#last = Math.max(this.#last, index)
    while (this.#last - this.#first >= MOST) this.#double()
  }

  #double(): void {
    const old = this.#bins
    this.#bins = new Map()
    this.width *= 2
    this.#first = Math.floor(this.#first / 2)
    this.#last = Math.floor(this.#last / 2)
    for (const [index, sums] of old) {
      const bin = this.#bin(Math.floor(index / 2))
      for (const [field, sum] of sums.entries()) bin[field]! += sum
    }
  }

  #bin(index: number): Float64Array {
    let bin = this.#bins.get(index)
    if (bin === undefined) {
      bin = new Float64Array(this.#fields)
      this.#bins.set(index, bin)
    }
    return bin
  }
}
