import { byteAt, chunkOf, QUOTE, stopsIn } from './bytes'
import { KEY_BASES, KEY_BLOOMS, KEY_HASHES, MOST_KEYS, scratch } from './layout'
import { stringEnd } from './string'

/** Objects with more keys than this are left to a second look. */
const KEYS_COMPARED: i32 = 64
/** PRIME64_1 and PRIME64_2 of XXH64. */
const PRIME_1: i64 = 0x9e3779b185ebca87
const PRIME_2: i64 = 0xc2b2ae3d27d4eb4f

/** An object may repeat a key, or has one with an escape, which may equal one spelt otherwise. */
export let mayRepeat: bool = false

/** Keys of all open objects: they lie on one stack, an object's own on top of its parents'. */
let keys: i32 = 0
let compares: bool = false

export function beginValue(comparesKeys: bool): void {
  mayRepeat = false
  compares = comparesKeys
  keys = 0
}

export function openObject(depth: i32): void {
  store<i32>(scratch + KEY_BASES + depth * 4, keys)
  store<i32>(scratch + KEY_BLOOMS + depth * 4, 0)
}

export function closeObject(depth: i32): void {
  keys = load<i32>(scratch + KEY_BASES + depth * 4)
}

/**
 * Reads the key at `at` of the object at this depth.
 *
 * @returns the offset behind its closing quote, or -1 where it is none
 */
export function readKey(at: i32, depth: i32): i32 {
  if (byteAt(at) !== QUOTE) return -1
  const start = at + 1
  const stops = stopsIn(v128.load(start))
  if (stops === 0) return readLongKey(start, depth)
  const length = ctz(stops)
  if (byteAt(start + length) !== QUOTE) {
    mayRepeat = true
    return stringEnd(start + length)
  }
  if (compares) {
    const chunk = chunkOf(start, length)
    const low = i64x2.extract_lane(chunk, 0) ^ length
    compare(low * PRIME_1 + i64x2.extract_lane(chunk, 1) * PRIME_2, depth)
  }
  return start + length + 1
}

/** A key of more than fifteen bytes, of which those may be hashed twice that complete the last sixteen. */
function readLongKey(start: i32, depth: i32): i32 {
  let hash: i64 = 0
  let at = start
  let stops = 0
  while (stops === 0) {
    hash = mixed(hash, at)
    at += 16
    stops = stopsIn(v128.load(at))
  }
  at += ctz(stops)
  if (byteAt(at) !== QUOTE) {
    mayRepeat = true
    return stringEnd(at)
  }
  if (compares) compare((mixed(hash, at - 16) ^ (at - start)) * PRIME_1, depth)
  return at + 1
}

function mixed(hash: i64, at: i32): i64 {
  const turned = rotl<i64>(hash ^ load<i64>(at), 31) * PRIME_1
  return rotl<i64>(turned ^ load<i64>(at + 8), 31) * PRIME_2
}

/** Compares a key's hash with those of its object so far. */
function compare(product: i64, depth: i32): void {
  const hash = (product >> 32) as i32
  const base = load<i32>(scratch + KEY_BASES + depth * 4)
  if (keys - base === KEYS_COMPARED || keys === MOST_KEYS) {
    mayRepeat = true
    return
  }
  const bit = 1 << (hash >>> 27)
  const bloom = load<i32>(scratch + KEY_BLOOMS + depth * 4)
  const hashes = scratch + KEY_HASHES
  if ((bloom & bit) !== 0) {
    for (let i = base; i < keys; i++) if (load<i32>(hashes + i * 4) === hash) mayRepeat = true
  }
  store<i32>(scratch + KEY_BLOOMS + depth * 4, bloom | bit)
  store<i32>(hashes + keys * 4, hash)
  keys++
}
