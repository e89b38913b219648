/**
 * Hashes and counter-based random numbers. Every draw is a pure function of a seed and an index, so
 * that what the simulator answers depends on what was asked and never on when or in which order.
 */

const C1 = 0xcc9e2d51
const C2 = 0x1b873593
const TWO_POW_32 = 0x1_0000_0000

/** The finaliser of MurmurHash3 (x86, 32 bits): every input bit reaches every output bit. */
function finalise(hash: number): number {
  let h = hash
  h = Math.imul(h ^ (h >>> 16), 0x85ebca6b)
  h = Math.imul(h ^ (h >>> 13), 0xc2b2ae35)
  return (h ^ (h >>> 16)) >>> 0
}

/** MurmurHash3's round over UTF-16 code units instead of 4-byte blocks: about 1 ns a unit. */
export function hashText(text: string, seed: number): number {
  let h = seed | 0
  for (let i = 0; i < text.length; i++) {
    const k = Math.imul(text.charCodeAt(i), C1)
    h ^= Math.imul((k << 15) | (k >>> 17), C2)
    h = (Math.imul((h << 13) | (h >>> 19), 5) + 0xe6546b64) | 0
  }
  return finalise(h ^ text.length)
}

/** The `index`-th 32-bit number of the stream that `seed` names; an unsigned integer. */
export function mix(seed: number, index: number): number {
  return finalise((seed ^ Math.imul(index + 1, 0x9e3779b1)) | 0)
}

/** The `index`-th number of the stream `seed`, uniform in [0, 1). */
export function uniform(seed: number, index: number): number {
  return mix(seed, index) / TWO_POW_32
}

/** The `index`-th standard normal number of the stream `seed` (Box-Muller). */
export function normal(seed: number, index: number): number {
  const radius = Math.sqrt(-2 * Math.log(1 - uniform(seed, 2 * index)))
  return radius * Math.cos(2 * Math.PI * uniform(seed, 2 * index + 1))
}

/**
 * The `index`-th number of the stream `seed` from a lognormal distribution.
 * @param mean the mean of the distribution itself, not of its logarithm
 * @param sigma the standard deviation of its logarithm
 */
export function lognormal(seed: number, index: number, mean: number, sigma: number): number {
  return mean * Math.exp(sigma * normal(seed, index) - (sigma * sigma) / 2)
}
