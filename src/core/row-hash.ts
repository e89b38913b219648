import { murmur128 } from './hash.ts'
import { type Bytes, stringText } from './json-string.ts'

/**
 * Where a row stands in a random order, from its id and a seed alone: the same on every machine, in
 * every order of the input. What it is for is part of it, so that a sample is no piece of a shuffle.
 */
export class RowHash {
  /** The two 32-bit words of the last hash, unsigned; the first one weighs more. */
  high = 0
  low = 0
  #seed: number
  #out = new Int32Array(4)

  constructor(purpose: string, seed: string) {
    const bytes = Buffer.from(`${purpose}:${seed}`)
    murmur128(bytes, 0, bytes.length, 0, this.#out)
    this.#seed = this.#out[0]!
  }

  /** Hashes the id whose JSON token lies from `start` to `end`: `81` and `"81"` are one id. */
  ofToken(bytes: Uint8Array, start: number, end: number): void {
    this.ofText(bytes[start] === 0x22 ? stringText(bytes, start, end) : { bytes, start, end })
  }

  ofText(text: Bytes): void {
    murmur128(text.bytes, text.start, text.end, this.#seed, this.#out)
    this.high = this.#out[0]! >>> 0
    this.low = this.#out[1]! >>> 0
  }

  /** The last hash as a number in [0, 1). */
  get unit(): number {
    return (this.high * 2 ** 21 + (this.low >>> 11)) / 2 ** 53
  }
}
