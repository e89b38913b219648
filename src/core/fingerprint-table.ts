/** Words of a fingerprint that are stored; 8 more bits of it choose the segment. */
const STORED = 3
const SEGMENTS = 256
const FIRST_CAPACITY = 16
const FULL = 0.75
/** Small segments double, for speed; large ones grow by half, for memory. */
const GROWTH = 1.5
const LARGE = 64 * 1024

/**
 * A hash table of 128-bit fingerprints in typed arrays, with a few 32-bit values each: a JS Map ends
 * at 2^24 entries and takes ten times the memory. It is cut into segments that grow one at a time
 * and by half, so that no doubling of the whole ever needs both sizes at once: at 100 million keys
 * it holds 12 to 24 bytes a key, values not counted.
 */
export class FingerprintTable {
  size = 0
  /** Where the last `find` or `insert` ended: the values begin at `array[at]`. */
  array: Int32Array = new Int32Array(0)
  at = 0

  #stride: number
  #segments: Int32Array[]
  #sizes = new Int32Array(SEGMENTS)

  /** @param values 32-bit numbers kept with each fingerprint */
  constructor(values: number) {
    this.#stride = STORED + values
    this.#segments = Array.from(
      { length: SEGMENTS },
      () => new Int32Array(FIRST_CAPACITY * this.#stride),
    )
  }

  /** Whether the fingerprint is there; `array` and `at` then point to its values. */
  find(fingerprint: Int32Array): boolean {
    const array = this.#segments[fingerprint[0]! >>> 24]!
    return this.#seek(array, fingerprint[1]!, fingerprint[2]!, filled(fingerprint[3]!))
  }

  /**
   * Adds a fingerprint, its values all 0, and points to them. To be called right after `find` has
   * told that it is not there: the place is known then.
   */
  insert(fingerprint: Int32Array): void {
    const segment = fingerprint[0]! >>> 24
    const last = filled(fingerprint[3]!)
    if ((this.#sizes[segment]! + 1) * this.#stride > this.array.length * FULL) {
      this.#seek(this.#grow(segment), fingerprint[1]!, fingerprint[2]!, last)
    }
    const { array } = this
    const at = this.at - STORED
    array[at] = fingerprint[1]!
    array[at + 1] = fingerprint[2]!
    array[at + 2] = last
    this.#sizes[segment]!++
    this.size++
  }

  #seek(array: Int32Array, first: number, second: number, third: number): boolean {
    const stride = this.#stride
    const capacity = array.length / stride
    let at = Math.floor(((first >>> 0) / 2 ** 32) * capacity) * stride
    this.array = array
    for (;;) {
      if (array[at + 2] === third && array[at] === first && array[at + 1] === second) {
        this.at = at + STORED
        return true
      }
      if (array[at + 2] === 0) {
        this.at = at + STORED
        return false
      }
      at += stride
      if (at === array.length) at = 0
    }
  }

  #grow(segment: number): Int32Array {
    const stride = this.#stride
    const old = this.#segments[segment]!
    const growth = old.length < LARGE ? 2 : GROWTH
    const array = new Int32Array(Math.ceil((old.length / stride) * growth) * stride)
    for (let at = 0; at < old.length; at += stride) {
      if (old[at + 2] === 0) continue
      this.#seek(array, old[at]!, old[at + 1]!, old[at + 2]!)
      const to = this.at - STORED
      for (let i = 0; i < stride; i++) array[to + i] = old[at + i]!
    }
    this.#segments[segment] = array
    return array
  }
}

/** Zero marks an empty place, so no stored word may be one. */
function filled(word: number): number {
  return word === 0 ? 1 : word
}
