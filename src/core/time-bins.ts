import { PAUSE } from './busy-time.ts'

/** Bins at most that hold something: memory does not grow with the run. */
const MOST = 120

/**
 * Sums over time in bins of one width, which doubles when they become too many; times may come in any
 * order. Pauses of a run cost no bins.
 */
export class TimeBins {
  /** Milliseconds; always a power of two of seconds. */
  width = 1000
  #fields: number
  #bins = new Map<number, Float64Array>()

  /** @param fields how many sums each bin has */
  constructor(fields: number) {
    this.#fields = fields
  }

  /** Adds to the bin of a moment (milliseconds since 1970). */
  add(at: number, field: number, amount: number): void {
    this.#bin(Math.floor(at / this.width))[field]! += amount
    this.#limit()
  }

  /** Spreads an amount evenly from one moment to another. */
  spread(from: number, to: number, field: number, amount: number): void {
    if (!(to > from)) {
      this.add(from, field, amount)
      return
    }
    const perMs = amount / (to - from)
    for (let at = from; at < to; ) {
      const index = Math.floor(at / this.width)
      const end = Math.min(to, (index + 1) * this.width)
      this.#bin(index)[field]! += (end - at) * perMs
      at = end
      this.#limit()
    }
  }

  /** The bins in order: those that hold something, and empty ones between them but for pauses. */
  list(): { at: number; sums: Float64Array }[] {
    const bins: { at: number; sums: Float64Array }[] = []
    let next = Number.POSITIVE_INFINITY
    for (const [index, sums] of [...this.#bins].toSorted(([a], [b]) => a - b)) {
      const isPause = (index - next) * this.width > PAUSE
      for (; !isPause && next < index; next++) {
        bins.push({ at: next * this.width, sums: new Float64Array(this.#fields) })
      }
      bins.push({ at: index * this.width, sums })
      next = index + 1
    }
    return bins
  }

  #limit(): void {
    while (this.#bins.size > MOST) this.#double()
  }

  #double(): void {
    const old = this.#bins
    this.#bins = new Map()
    this.width *= 2
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
