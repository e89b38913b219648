import { WordView } from './word-view.ts'

/** Appends up to this length are copied in a loop: a native copy costs as much as that. */
const SMALL = 160
/** From this length on words are copied; the constants between them are shorter, and change views. */
const WORDS = 40

const ownMemory = (size: number): Buffer => Buffer.allocUnsafeSlow(size)

/** Bytes put together in one growing buffer, emptied at will and never given back. */
export class ByteBuilder {
  bytes: Buffer
  length = 0
  #from = new WordView()
  #to = new WordView()

  #allocate: (size: number) => Buffer

  constructor(capacity = 64 * 1024, allocate = ownMemory) {
    this.#allocate = allocate
    this.bytes = allocate(capacity)
  }

  /** Appends the bytes from `start` to `end`, which may lie in this builder too. */
  append(bytes: Uint8Array, start = 0, end = bytes.length): void {
    const length = end - start
    if (length <= 0) return
    this.reserve(length)
    const out = this.bytes
    let at = this.length
    this.length += length
    if (length > SMALL) {
      out.set(bytes.subarray(start, end), at)
      return
    }
    let from = start
    if (length >= WORDS) {
      const source = this.#from.of(bytes)
      const target = this.#to.of(out)
      for (; from + 4 <= end; from += 4, at += 4) {
        target.setInt32(at, source.getInt32(from, true), true)
      }
    }
    while (from < end) out[at++] = bytes[from++]!
  }

  /** Appends a number in decimal digits. */
  digits(value: number): void {
    this.reserve(16)
    let count = 1
    for (let rest = value; rest >= 10; rest = Math.floor(rest / 10)) count++
    let rest = value
    for (let at = this.length + count - 1; at >= this.length; at--) {
      this.bytes[at] = 0x30 + (rest % 10)
      rest = Math.floor(rest / 10)
    }
    this.length += count
  }

  byte(value: number): void {
    this.reserve(1)
    this.bytes[this.length++] = value
  }

  /** What was built so far; valid until the next append. */
  view(): Buffer {
    return this.bytes.subarray(0, this.length)
  }

  /** Makes sure that `more` bytes fit behind `length`. */
  reserve(more: number): void {
    if (this.length + more <= this.bytes.length) return
    const larger = this.#allocate(Math.max(this.bytes.length * 2, this.length + more))
    larger.set(this.bytes.subarray(0, this.length))
    this.bytes = larger
  }
}
