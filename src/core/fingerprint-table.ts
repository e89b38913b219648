import { TableRoom } from './table-room.ts'

/** Words of a fingerprint that are stored; 8 more bits of it choose the segment. */
const STORED = 3
const SEGMENTS = 256
const FIRST_CAPACITY = 16
const FULL = 0.75
/** Small segments double, for speed; large ones grow by half, for memory. */
const GROWTH = 1.5
const LARGE = 64 * 1024
/** Room is made for so many at once at most: 90 MB with a value each. */
const MOST_EXPECTED = 4_000_000
const WORD_RANGE = 2 ** 32
/** Bytes of a table that stay in the caches beside the records: reading it in advance gains nothing. */
const CACHED = 256 * 1024

/**
 * A hash table of 128-bit fingerprints in typed arrays, with a few 32-bit values each: a JS Map ends
 * at 2^24 entries and takes ten times the memory. It is cut into segments that grow one at a time
 * and by half, so that no doubling of the whole ever needs both sizes at once: at 100 million keys
 * it holds 12 to 24 bytes a key, values not counted.
 *
 * Fingerprints are four words of an array, from an offset on.
 */
export class FingerprintTable {
  /** Where all segments are, while they are in one. */
  room: TableRoom | undefined
  /** Where the last `find` or `place` ended: the values begin at `array[at]`. */
  array: Int32Array = new Int32Array(0)
  at = 0

  #stride: number
  #segments: Int32Array[]
  #sizes: Int32Array = new Int32Array(SEGMENTS)
  /** Per segment: its places per value that a word can have. */
  #densities = new Float64Array(SEGMENTS).fill(FIRST_CAPACITY / WORD_RANGE)
  #isLarge = false
  /** Takes what `touch` reads, which would not be read if nobody took it. */
  #touched = new Int32Array(1)

  get size(): number {
    return this.#sizes.reduce((sum, size) => sum + size, 0)
  }

  /** @param values 32-bit numbers kept with each fingerprint */
  constructor(values: number) {
    this.#stride = STORED + values
    this.#segments = Array.from(
      { length: SEGMENTS },
      () => new Int32Array(FIRST_CAPACITY * this.#stride),
    )
  }

  /** Whether the fingerprint is there; `array` and `at` then point to its values. */
  find(words: Int32Array, from = 0): boolean {
    const segment = words[from]! >>> 24
    return this.#seek(segment, words[from + 1]!, words[from + 2]!, filled(words[from + 3]!))
  }

  /**
   * Points to the values of a fingerprint, and adds it, its values all 0, where it is not there.
   *
   * In one piece, with no call on its way: before V8 compiles it 4,000 keys take as long as 50,000
   * after that, and parts take twice as long.
   *
   * @returns whether it was there
   */
  place(words: Int32Array, from = 0): boolean {
    const stride = this.#stride
    const segment = words[from]! >>> 24
    const array = this.#segments[segment]!
    const first = words[from + 1]!
    const second = words[from + 2]!
    const third = words[from + 3]! === 0 ? 1 : words[from + 3]!
    let at = Math.floor((first >>> 0) * this.#densities[segment]!) * stride
    for (let stored = array[at + 2]!; stored !== 0; stored = array[at + 2]!) {
      if (stored === third && array[at] === first && array[at + 1] === second) {
        this.array = array
        this.at = at + STORED
        return true
      }
      at += stride
      if (at === array.length) at = 0
    }
    if ((this.#sizes[segment]! + 1) * stride > array.length * FULL) {
      this.#grow(segment)
      return this.place(words, from)
    }
    array[at] = first
    array[at + 1] = second
    array[at + 2] = third
    this.#sizes[segment]!++
    this.array = array
    this.at = at + STORED
    return false
  }

  /**
   * Makes room for so many fingerprints more, as far as that is no waste if they do not come: growing
   * from small costs as much as half of what is put in.
   */
  expect(more: number): void {
    const each = (this.size + Math.min(more, MOST_EXPECTED)) / SEGMENTS
    // Fingerprints fall into segments as chance has it: by Poisson.
    const wanted = Math.ceil((each + 3 * Math.sqrt(each)) / FULL)
    const length = wanted * this.#stride
    if (this.#segments.every((segment) => segment.length >= length)) return
    const room = new TableRoom(SEGMENTS, length, this.#stride)
    room.sizes.set(this.#sizes)
    this.#sizes = room.sizes
    this.room = room
    for (let segment = 0; segment < SEGMENTS; segment++) {
      if (this.#segments[segment]!.length < length) this.#rehash(segment, room.segment(segment))
      else this.#leaveRoom()
    }
    this.#isLarge = room.byteLength > CACHED
  }

  /**
   * Reads where the fingerprints of several rows stand, so that the finds that follow do not wait for
   * the memory one by one: of millions of keys each lies in another line of it.
   */
  touch(rows: Int32Array, from: number, end: number, rowLength: number): void {
    if (!this.#isLarge) return
    let sum = 0
    for (let row = from; row < end; row += rowLength) {
      const segment = rows[row]! >>> 24
      sum ^= this.#segments[segment]![this.#home(segment, rows[row + 1]!)]!
    }
    this.#touched[0] = sum
  }

  /** Where the search for a fingerprint begins: in the order of their first stored words. */
  #home(segment: number, first: number): number {
    return Math.floor((first >>> 0) * this.#densities[segment]!) * this.#stride
  }

  #seek(segment: number, first: number, second: number, third: number): boolean {
    const stride = this.#stride
    const array = this.#segments[segment]!
    let at = this.#home(segment, first)
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

  #grow(segment: number): void {
    const { length } = this.#segments[segment]!
    const growth = length < LARGE ? 2 : GROWTH
    const capacity = Math.ceil((length / this.#stride) * growth)
    this.#rehash(segment, new Int32Array(capacity * this.#stride))
    this.#leaveRoom()
    this.#isLarge ||= SEGMENTS * length * Int32Array.BYTES_PER_ELEMENT > CACHED
  }

  /** The room is free once the last segment has left it too. */
  #leaveRoom(): void {
    if (this.room === undefined) return
    this.#sizes = this.#sizes.slice()
    this.room = undefined
  }

  /** Moves a segment into a new array of zeros. */
  #rehash(segment: number, array: Int32Array): void {
    const stride = this.#stride
    const old = this.#segments[segment]!
    this.#segments[segment] = array
    this.#densities[segment] = array.length / stride / WORD_RANGE
    if (this.#sizes[segment] === 0) return
    for (let at = 0; at < old.length; at += stride) {
      if (old[at + 2] === 0) continue
      // No two are the same, so nothing has to be compared.
      let to = this.#home(segment, old[at]!)
      while (array[to + 2] !== 0) {
        to += stride
        if (to === array.length) to = 0
      }
      for (let i = 0; i < stride; i++) array[to + i] = old[at + i]!
    }
  }
}

/** Zero marks an empty place, so no stored word may be one. */
function filled(word: number): number {
  return word === 0 ? 1 : word
}
