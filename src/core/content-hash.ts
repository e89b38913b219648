import { kernelOf } from './kernel.ts'
import { recordEnd, recordStart } from './line-bounds.ts'
import { WordView } from './word-view.ts'

/** The odd number of the golden ratio: its products spread to all higher bits. */
const FACTOR = 0x9e3779b1 | 0

/** Longer records are hashed in sixteen lanes, which the kernel does four at a time. */
const LONG = 256
const LANES = 16
const STEP = LANES * Int32Array.BYTES_PER_ELEMENT

const words = new WordView()
const lanes = new Int32Array(LANES)
const sums = new Int32Array(LANES)

/**
 * A hash of a record's content, to tell whether a key stands for another record than before; the
 * same wherever the record lies.
 */
export function contentHash(bytes: Uint8Array, start: number, end: number): number {
  const kernel = kernelOf(bytes)
  if (kernel !== undefined) return kernel.run.contentHash(start, end)
  return end - start < LONG ? hashOfShort(bytes, start, end) : hashOfLong(bytes, start, end)
}

/** The same of a line: white space around its record is no content. */
export function contentOfLine(bytes: Uint8Array, start: number, end: number): number {
  const from = recordStart(bytes, start, end)
  return contentHash(bytes, from, recordEnd(bytes, from, end))
}

function hashOfShort(bytes: Uint8Array, start: number, end: number): number {
  const view = words.of(bytes)
  let hash = end - start
  let other = ~hash
  let at = start
  for (; at + 8 <= end; at += 8) {
    hash = mixed(hash ^ view.getInt32(at, true))
    other = mixed(other ^ view.getInt32(at + 4, true))
  }
  if (at < end && end - start >= 8) {
    // What is left lies in the last eight bytes.
    hash = mixed(hash ^ view.getInt32(end - 8, true))
    other = mixed(other ^ view.getInt32(end - 4, true))
  } else for (; at < end; at++) hash = mixed(hash ^ bytes[at]!)
  return mixed(hash ^ mixed(other))
}

/**
 * Fletcher's two sums (J. G. Fletcher, An Arithmetic Checksum for Serial Transmissions, 1982) in lanes
 * modulo 2^32. Each four of the second sums turn by three bytes at a step, or the highest bits of a
 * word would tell little of its place.
 */
function hashOfLong(bytes: Uint8Array, start: number, end: number): number {
  const view = words.of(bytes)
  const length = end - start
  for (let lane = 0; lane < LANES; lane++) lanes[lane] = (lane & 4) === 0 ? length : ~length
  sums.fill(0)
  for (let at = start, isLast = false; ; ) {
    for (let lane = 0; lane < LANES; lane++) {
      lanes[lane]! += view.getInt32(at + 4 * lane, true)
      sums[lane]! += lanes[lane]!
    }
    for (let four = 0; four < LANES; four += 4) turn(four)
    if (isLast) break
    at += STEP
    // What is left lies in the last bytes.
    isLast = at > end - STEP
    if (isLast) at = end - STEP
  }
  let hash = 0
  for (const lane of lanes) hash = mixed(hash ^ lane)
  for (const sum of sums) hash = mixed(hash ^ sum)
  return hash
}

/** Turns the sixteen bytes of four sums by three. */
function turn(from: number): void {
  const first = sums[from]!
  for (let at = from; at < from + 4; at++) {
    const next = at === from + 3 ? first : sums[at + 1]!
    sums[at] = (sums[at]! >>> 24) | (next << 8)
  }
}

function mixed(value: number): number {
  const product = Math.imul(value, FACTOR)
  return product ^ (product >>> 15)
}
