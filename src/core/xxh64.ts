/**
 * XXH64 with seed 0, the checksum of zstd frames (github.com/Cyan4973/xxHash, doc/xxhash_spec.md). The
 * bulk is hashed by WebAssembly; where there is none, by BigInt at a fiftieth of the speed.
 */

import { kernelBytes, kernelOf } from './kernel.ts'

/** The primes of the specification. */
const PRIME_1 = 0x9e3779b185ebca87n
const PRIME_2 = 0xc2b2ae3d27d4eb4fn
const PRIME_3 = 0x165667b19e3779f9n
const PRIME_4 = 0x85ebca77c2b2ae63n
const PRIME_5 = 0x27d4eb2f165667c5n

/** Bytes that are hashed at once: eight for each of the four sums. */
const STRIPE = 32

/** Hashes the whole stripes of `bytes` into the four sums. */
type Stripes = (sums: BigUint64Array, bytes: Uint8Array) => void

/** Bytes of the four sums, which lie before what is hashed. */
const SUMS = 32
/** Bytes that the kernel is given at a time: a block of zstd. */
const PIECE = 128 * 1024

let fastest: Stripes | undefined

/** Hashes bytes that come in pieces. */
export class Xxh64 {
  #stripes: Stripes
  #sums = BigUint64Array.of(wrap(PRIME_1 + PRIME_2), PRIME_2, 0n, wrap(-PRIME_1))
  /** What is left behind the last whole stripe. */
  #rest = new Uint8Array(STRIPE)
  #restLength = 0
  #length = 0

  /** @param stripes by whom the bulk is hashed */
  constructor(stripes: Stripes = fastestStripes()) {
    this.#stripes = stripes
  }

  update(bytes: Uint8Array): void {
    this.#length += bytes.length
    let from = 0
    if (this.#restLength > 0) {
      from = Math.min(bytes.length, STRIPE - this.#restLength)
      this.#rest.set(bytes.subarray(0, from), this.#restLength)
      this.#restLength += from
      if (this.#restLength < STRIPE) return
      this.#stripes(this.#sums, this.#rest)
    }
    const end = bytes.length - ((bytes.length - from) % STRIPE)
    for (; from < end; from += PIECE) {
      this.#stripes(this.#sums, bytes.subarray(from, Math.min(end, from + PIECE)))
    }
    this.#rest.set(bytes.subarray(end))
    this.#restLength = bytes.length - end
  }

  /** The hash of all bytes so far. */
  digest(): bigint {
    const start = this.#length < STRIPE ? PRIME_5 : converge(this.#sums)
    let hash = wrap(start + BigInt(this.#length))
    const rest = this.#rest.subarray(0, this.#restLength)
    const view = new DataView(rest.buffer, 0, rest.length)
    let at = 0
    for (; at + 8 <= rest.length; at += 8) {
      hash ^= round(0n, view.getBigUint64(at, true))
      hash = wrap(rotate(hash, 27n) * PRIME_1 + PRIME_4)
    }
    if (at + 4 <= rest.length) {
      hash ^= wrap(BigInt(view.getUint32(at, true)) * PRIME_1)
      hash = wrap(rotate(hash, 23n) * PRIME_2 + PRIME_3)
      at += 4
    }
    for (const byte of rest.subarray(at)) {
      hash ^= wrap(BigInt(byte) * PRIME_5)
      hash = wrap(rotate(hash, 11n) * PRIME_1)
    }
    return avalanche(hash)
  }
}

function fastestStripes(): Stripes {
  fastest ??= wasmStripes() ?? plainStripes
  return fastest
}

/** The bulk by the kernel; undefined where there is none, as under a limit on the address space. */
export function wasmStripes(): Stripes | undefined {
  const own = kernelBytes(SUMS + PIECE)
  const kernel = own && kernelOf(own)
  if (own === undefined || kernel === undefined) return undefined
  const ownSums = new BigUint64Array(own.buffer, 0, 4)
  return (sums, bytes) => {
    ownSums.set(sums)
    own.set(bytes, SUMS)
    kernel.run.xxh64Stripes(0, SUMS, SUMS + bytes.length)
    sums.set(ownSums)
  }
}

/** The bulk without WebAssembly. */
export function plainStripes(sums: BigUint64Array, bytes: Uint8Array): void {
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.length)
  for (let at = 0; at < bytes.length; at += 8) {
    const lane = (at / 8) % 4
    sums[lane] = round(sums[lane]!, view.getBigUint64(at, true))
  }
}

function wrap(value: bigint): bigint {
  return BigInt.asUintN(64, value)
}

function rotate(value: bigint, bits: bigint): bigint {
  return wrap(value << bits) | (value >> (64n - bits))
}

function round(sum: bigint, word: bigint): bigint {
  return wrap(rotate(wrap(sum + word * PRIME_2), 31n) * PRIME_1)
}

function converge(sums: BigUint64Array): bigint {
  const [one, two, three, four] = sums as unknown as [bigint, bigint, bigint, bigint]
  let hash = wrap(rotate(one, 1n) + rotate(two, 7n) + rotate(three, 12n) + rotate(four, 18n))
  for (const sum of sums) hash = wrap((hash ^ round(0n, sum)) * PRIME_1 + PRIME_4)
  return hash
}

function avalanche(hash: bigint): bigint {
  let mixed = wrap((hash ^ (hash >> 33n)) * PRIME_2)
  mixed = wrap((mixed ^ (mixed >> 29n)) * PRIME_3)
  return mixed ^ (mixed >> 32n)
}
