/** The hashes of content-hash.ts and hash.ts, which say where they are from. */

import { chunkOf } from './bytes'

/** As in content-hash.ts. */
const FACTOR: i32 = 0x9e3779b1
const LONG: i32 = 256

/** contentHash of content-hash.ts. */
export function contentHash(start: i32, end: i32): i32 {
  return end - start < LONG ? hashOfShort(start, end) : hashOfLong(start, end)
}

function hashOfShort(start: i32, end: i32): i32 {
  let hash = end - start
  let other = ~hash
  let at = start
  for (; at + 8 <= end; at += 8) {
    hash = mixed(hash ^ load<i32>(at))
    other = mixed(other ^ load<i32>(at + 4))
  }
  if (at < end && end - start >= 8) {
    hash = mixed(hash ^ load<i32>(end - 8))
    other = mixed(other ^ load<i32>(end - 4))
  } else for (; at < end; at++) hash = mixed(hash ^ load<u8>(at))
  return mixed(hash ^ mixed(other))
}

/** The same of at least 64 bytes, in sixteen lanes. */
function hashOfLong(start: i32, end: i32): i32 {
  let one = i32x4.splat(end - start)
  let two = i32x4.splat(~(end - start))
  let three = one
  let four = two
  let oneSum = i32x4.splat(0)
  let twoSum = oneSum
  let threeSum = oneSum
  let fourSum = oneSum
  // What is left lies in the last 64 bytes, which are taken once more where nothing is.
  const last = end - 64
  let at = start
  let isLast = false
  while (true) {
    one = i32x4.add(one, v128.load(at))
    two = i32x4.add(two, v128.load(at, 16))
    three = i32x4.add(three, v128.load(at, 32))
    four = i32x4.add(four, v128.load(at, 48))
    oneSum = turned(i32x4.add(oneSum, one))
    twoSum = turned(i32x4.add(twoSum, two))
    threeSum = turned(i32x4.add(threeSum, three))
    fourSum = turned(i32x4.add(fourSum, four))
    if (isLast) break
    at += 64
    isLast = at > last
    if (isLast) at = last
  }
  const lanes = foldIn(foldIn(foldIn(foldIn(0, one), two), three), four)
  return foldIn(foldIn(foldIn(foldIn(lanes, oneSum), twoSum), threeSum), fourSum)
}

function turned(sums: v128): v128 {
  return i8x16.shuffle(sums, sums, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 0, 1, 2)
}

function foldIn(hash: i32, lanes: v128): i32 {
  let folded = mixed(hash ^ i32x4.extract_lane(lanes, 0))
  folded = mixed(folded ^ i32x4.extract_lane(lanes, 1))
  folded = mixed(folded ^ i32x4.extract_lane(lanes, 2))
  return mixed(folded ^ i32x4.extract_lane(lanes, 3))
}

function mixed(hash: i32): i32 {
  const product = hash * FACTOR
  return product ^ (product >>> 15)
}

/** murmur128 of hash.ts; its four words are stored at `to`. */
export function murmur128(start: i32, end: i32, to: i32): void {
  const length = end - start
  const blocksEnd = start + (length & ~15)
  let h1 = 0
  let h2 = 0
  let h3 = 0
  let h4 = 0
  for (let at = start; at < blocksEnd; at += 16) {
    h1 ^= mix1(load<i32>(at))
    h1 = (rotl<i32>(h1, 19) + h2) * 5 + 0x561ccd1b
    h2 ^= mix2(load<i32>(at + 4))
    h2 = (rotl<i32>(h2, 17) + h3) * 5 + 0x0bcaa747
    h3 ^= mix3(load<i32>(at + 8))
    h3 = (rotl<i32>(h3, 15) + h4) * 5 + 0x96cd1c35
    h4 ^= mix4(load<i32>(at + 12))
    h4 = (rotl<i32>(h4, 13) + h1) * 5 + 0x32ac3b17
  }
  // The mix of nothing is nothing.
  const rest = chunkOf(blocksEnd, end - blocksEnd)
  h1 ^= mix1(i32x4.extract_lane(rest, 0)) ^ length
  h2 ^= mix2(i32x4.extract_lane(rest, 1)) ^ length
  h3 ^= mix3(i32x4.extract_lane(rest, 2)) ^ length
  h4 ^= mix4(i32x4.extract_lane(rest, 3)) ^ length
  h1 = h1 + h2 + h3 + h4
  h2 = finish(h2 + h1)
  h3 = finish(h3 + h1)
  h4 = finish(h4 + h1)
  h1 = finish(h1)
  h1 = h1 + h2 + h3 + h4
  store<i32>(to, h1)
  store<i32>(to + 4, h2 + h1)
  store<i32>(to + 8, h3 + h1)
  store<i32>(to + 12, h4 + h1)
}

function mix1(k: i32): i32 {
  return rotl<i32>(k * 0x239b961b, 15) * 0xab0e9789
}

function mix2(k: i32): i32 {
  return rotl<i32>(k * 0xab0e9789, 16) * 0x38b34ae5
}

function mix3(k: i32): i32 {
  return rotl<i32>(k * 0x38b34ae5, 17) * 0xa1e38b93
}

function mix4(k: i32): i32 {
  return rotl<i32>(k * 0xa1e38b93, 18) * 0x239b961b
}

function finish(hash: i32): i32 {
  let h = (hash ^ (hash >>> 16)) * 0x85ebca6b
  h = (h ^ (h >>> 13)) * 0xc2b2ae35
  return h ^ (h >>> 16)
}
