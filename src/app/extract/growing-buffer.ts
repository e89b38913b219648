import type { ByteReader } from '../../core/byte-reader.ts'
import { PADDING } from '../../core/json-scan.ts'
import { BLOCK_SIZE } from '../../streams/line-blocks.ts'

/** What is read is scanned with 32-bit offsets. */
const LONGEST = 2 ** 31 - 1 - PADDING

/** Bytes of a file from the first that is still needed on, with the scanner's padding behind them. */
export class GrowingBuffer {
  bytes = Buffer.allocUnsafeSlow(2 * BLOCK_SIZE + PADDING)
  filled = 0

  /** Reads more; returns how much, 0 at the end, and -1 where there can be no more room. */
  async fill(reader: ByteReader): Promise<number> {
    if (this.#room < BLOCK_SIZE && !this.#grow()) return -1
    const count = await reader.read(this.bytes, this.filled, Math.min(this.#room, BLOCK_SIZE))
    this.filled += count
    return count
  }

  /** Drops bytes from its beginning. */
  drop(count: number): void {
    this.bytes.copyWithin(0, count, this.filled)
    this.filled -= count
  }

  get #room(): number {
    return this.bytes.length - PADDING - this.filled
  }

  #grow(): boolean {
    const size = Math.min((this.bytes.length - PADDING) * 2, LONGEST)
    if (size <= this.filled) return false
    const larger = Buffer.allocUnsafeSlow(size + PADDING)
    this.bytes.copy(larger, 0, 0, this.filled)
    this.bytes = larger
    return true
  }
}
