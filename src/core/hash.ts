import { WordView } from './word-view.ts'

const words = new WordView()

/**
 * MurmurHash3 x86_128 (Austin Appleby, public domain), over bytes, in 32-bit integer arithmetic.
 *
 * 128 bits, because a false match between two keys is a lost sample: among 10^8 keys two of them
 * share 96 bits with a probability of 6e-14, 64 bits with 3e-4.
 *
 * @param out receives the four 32-bit words of the hash
 * @param to where in `out`
 */
export function murmur128(
  bytes: Uint8Array,
  start: number,
  end: number,
  seed: number,
  out: Int32Array,
  to = 0,
): void {
  const length = end - start
  const blocksEnd = start + (length & ~15)
  let h1 = seed
  let h2 = seed
  let h3 = seed
  let h4 = seed
  const view = words.of(bytes)
  for (let at = start; at < blocksEnd; at += 16) {
    h1 ^= mix1(view.getInt32(at, true))
    h1 = (Math.imul(rotl(h1, 19) + h2, 5) + 0x561ccd1b) | 0
    h2 ^= mix2(view.getInt32(at + 4, true))
    h2 = (Math.imul(rotl(h2, 17) + h3, 5) + 0x0bcaa747) | 0
    h3 ^= mix3(view.getInt32(at + 8, true))
    h3 = (Math.imul(rotl(h3, 15) + h4, 5) + 0x96cd1c35) | 0
    h4 ^= mix4(view.getInt32(at + 12, true))
    h4 = (Math.imul(rotl(h4, 13) + h1, 5) + 0x32ac3b17) | 0
  }
  // The mix of nothing is nothing.
  if (blocksEnd < end) {
    h1 ^= mix1(partialWord(view, blocksEnd, end))
    if (end - blocksEnd > 4) h2 ^= mix2(partialWord(view, blocksEnd + 4, end))
    if (end - blocksEnd > 8) h3 ^= mix3(partialWord(view, blocksEnd + 8, end))
    if (end - blocksEnd > 12) h4 ^= mix4(partialWord(view, blocksEnd + 12, end))
  }

  h1 ^= length
  h2 ^= length
  h3 ^= length
  h4 ^= length
  h1 = (h1 + h2 + h3 + h4) | 0
  h2 = (h2 + h1) | 0
  h3 = (h3 + h1) | 0
  h4 = (h4 + h1) | 0
  h1 = finish(h1)
  h2 = finish(h2)
  h3 = finish(h3)
  h4 = finish(h4)
  h1 = (h1 + h2 + h3 + h4) | 0
  out[to] = h1
  out[to + 1] = (h2 + h1) | 0
  out[to + 2] = (h3 + h1) | 0
  out[to + 3] = (h4 + h1) | 0
}

function mix1(k: number): number {
  return Math.imul(rotl(Math.imul(k, 0x239b961b), 15), 0xab0e9789)
}

function mix2(k: number): number {
  return Math.imul(rotl(Math.imul(k, 0xab0e9789), 16), 0x38b34ae5)
}

function mix3(k: number): number {
  return Math.imul(rotl(Math.imul(k, 0x38b34ae5), 17), 0xa1e38b93)
}

function mix4(k: number): number {
  return Math.imul(rotl(Math.imul(k, 0xa1e38b93), 18), 0x239b961b)
}

function finish(hash: number): number {
  let h = Math.imul(hash ^ (hash >>> 16), 0x85ebca6b)
  h = Math.imul(h ^ (h >>> 13), 0xc2b2ae35)
  return h ^ (h >>> 16)
}

function rotl(x: number, by: number): number {
  return (x << by) | (x >>> (32 - by))
}

/** The bytes from `at` that lie before `end`, one to four, as a little-endian word. */
function partialWord(view: DataView, at: number, end: number): number {
  const bits = 8 * (end - at)
  if (at + 4 <= view.byteLength) {
    const word = view.getInt32(at, true)
    return bits >= 32 ? word : word & ((1 << bits) - 1)
  }
  let word = 0
  for (let i = end - 1; i >= at; i--) word = (word << 8) | view.getUint8(i)
  return word
}
