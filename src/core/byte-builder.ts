/** Appends up to this length are copied in a loop: a native copy costs as much as that. */
const SMALL = 128

/** Bytes put together in one growing buffer, emptied at will and never given back. */
export class ByteBuilder {
  bytes: Buffer
  length = 0

  constructor(capacity = 64 * 1024) {
    this.bytes = Buffer.allocUnsafeSlow(capacity)
  }

  /** Appends the bytes from `start` to `end`, which may lie in this builder too. */
  append(bytes: Uint8Array, start = 0, end = bytes.length): void {
    const length = end - start
    if (length <= 0) return
    this.reserve(length)
    let at = this.length
    this.length += length
    if (length > SMALL) {
      this.bytes.set(bytes.subarray(start, end), at)
      return
    }
    for (let from = start; from < end; from++) this.bytes[at++] = bytes[from]!
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
    const larger = Buffer.allocUnsafeSlow(Math.max(this.bytes.length * 2, this.length + more))
    larger.set(this.bytes.subarray(0, this.length))
    this.bytes = larger
  }
}
