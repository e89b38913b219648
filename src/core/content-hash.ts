import { kernelOf } from './kernel.ts'
import { HASH_FACTOR } from './kernel-code.ts'
import { WordView } from './word-view.ts'

/** Longer records are hashed in eight lanes, which the kernel does at once. */
const LONG = 256

const words = new WordView()

/**
 * A hash of a record's content, to tell whether a key stands for another record than before; the
 * same wherever the record lies.
 */
export function contentHash(bytes: Uint8Array, start: number, end: number): number {
  if (end - start < LONG) return hashOfShort(bytes, start, end)
  const kernel = kernelOf(bytes)
  return kernel === undefined ? hashOfLong(bytes, start, end) : kernel.hash(start, end)
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
  for (; at < end; at++) hash = mixed(hash ^ bytes[at]!)
  return mixed(hash ^ mixed(other))
}

/** What the kernel's `hash` does, where there is none. */
function hashOfLong(bytes: Uint8Array, start: number, end: number): number {
  const view = words.of(bytes)
  const length = end - start
  let [a, b, c, d] = [length, length, length, length]
  let [e, f, g, h] = [~length, ~length, ~length, ~length]
  for (let at = start, isLast = false; ; ) {
    a = mixed(a ^ view.getInt32(at, true))
    b = mixed(b ^ view.getInt32(at + 4, true))
    c = mixed(c ^ view.getInt32(at + 8, true))
    d = mixed(d ^ view.getInt32(at + 12, true))
    e = mixed(e ^ view.getInt32(at + 16, true))
    f = mixed(f ^ view.getInt32(at + 20, true))
    g = mixed(g ^ view.getInt32(at + 24, true))
    h = mixed(h ^ view.getInt32(at + 28, true))
    if (isLast) break
    at += 32
    // What is left lies in the last 32 bytes.
    isLast = at > end - 32
    if (isLast) at = end - 32
  }
  let hash = 0
  for (const lane of [a, b, c, d, e, f, g, h]) hash = mixed(hash ^ lane)
  return hash
}

function mixed(value: number): number {
  const product = Math.imul(value, HASH_FACTOR)
  return product ^ (product >>> 15)
}
