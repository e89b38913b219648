import type { ByteReader } from '../../src/core/byte-reader.ts'

/** Reads bytes in memory. */
export class MemoryReader implements ByteReader {
  #bytes: Uint8Array
  #at = 0

  constructor(bytes: Uint8Array) {
    this.#bytes = bytes
  }

  read(into: Buffer, offset: number, length: number): Promise<number> {
    const part = this.#bytes.subarray(this.#at, this.#at + length)
    into.set(part, offset)
    this.#at += part.length
    return Promise.resolve(part.length)
  }
}
