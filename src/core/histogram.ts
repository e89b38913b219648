/** Buckets per factor of two: neighbouring bounds differ by 2^(1/8), 9 %. */
const PER_OCTAVE = 8
const OCTAVES = 40

/**
 * Durations or lengths in buckets of relative width, in memory that does not grow: percentiles come
 * within 5 % of the truth (the scheme of HdrHistogram, with a coarser grid).
 */
export class Histogram {
  count = 0
  sum = 0
  max = 0
  #buckets = new Float64Array(OCTAVES * PER_OCTAVE + 1)

  add(value: number): void {
    this.count++
    this.sum += value
    this.max = Math.max(this.max, value)
    const bucket = value < 1 ? 0 : 1 + Math.floor(Math.log2(value) * PER_OCTAVE)
    this.#buckets[Math.min(bucket, this.#buckets.length - 1)]!++
  }

  get mean(): number {
    return this.count === 0 ? 0 : this.sum / this.count
  }

  /** @param share of the values that lie below, 0 to 1; 0 where nothing was added */
  percentile(share: number): number {
    let left = share * this.count
    for (const [bucket, count] of this.#buckets.entries()) {
      left -= count
      if (left <= 0 && count > 0) return bucket === 0 ? 0 : 2 ** ((bucket - 0.5) / PER_OCTAVE)
    }
    return 0
  }

  /**
   * The values in at most `most` bars of one relative width, from the first that holds any to the last.
   */
  bars(most: number): { from: number; to: number; count: number }[] {
    const first = this.#buckets.findIndex((count) => count > 0)
    if (first < 0) return []
    const last = this.#buckets.findLastIndex((count) => count > 0)
    const width = Math.ceil((last - first + 1) / most)
    const bars: { from: number; to: number; count: number }[] = []
    const bound = (bucket: number): number => (bucket === 0 ? 0 : 2 ** ((bucket - 1) / PER_OCTAVE))
    for (let at = first; at <= last; at += width) {
      const count = this.#buckets.subarray(at, at + width).reduce((sum, one) => sum + one, 0)
      bars.push({ from: bound(at), to: bound(at + width), count })
    }
    return bars
  }

  /** The usual percentiles, rounded. */
  summary(): { p50: number; p90: number; p99: number; mean: number } {
    const at = (share: number): number => Math.round(this.percentile(share))
    return { p50: at(0.5), p90: at(0.9), p99: at(0.99), mean: Math.round(this.mean) }
  }
}
