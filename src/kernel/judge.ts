/**
 * Judges records by their keys, as CompletedIndex does, in the segments of a FingerprintTable with one
 * value. They lie one behind the other, all of one size, behind the numbers of what is in each; rows
 * come and verdicts go where rows.ts has its rows.
 */
import { KEY_COLUMNS } from './keys'
import { HEADER, ROWS, scratch } from './layout'

/** As in completed-index.ts. */
const COMPLETED: i32 = 1
const REPEATED: i32 = 2
const CONFLICT: i32 = 4
const ANSWERED: i32 = 1
const SEEN: i32 = 2
const FLAG_BITS: i32 = 2

/** As in fingerprint-table.ts: three words of a fingerprint and the value. */
const SEGMENTS: i32 = 256
const SLOT: i32 = 16
const VALUE: i32 = 12

/** Records of the last call that do not pass, or in conflict with another. */
let others: i32 = 0

export function otherVerdicts(): i32 {
  return others
}

/**
 * Judges the records of so many rows; in each its verdict takes the place of the first number.
 *
 * @param capacity places in each segment
 * @returns how many it judged: it ends before one for which its segment would have to grow
 */
export function judgeRows(count: i32, capacity: i32): i32 {
  const from = scratch + ROWS
  const end = from + count * KEY_COLUMNS * 4
  others = 0
  touch(from, end, capacity)
  for (let row = from; row < end; row += KEY_COLUMNS * 4) {
    const value = place(row + 4, capacity)
    if (value < 0) return (row - from) / (KEY_COLUMNS * 4)
    const flags = load<i32>(value)
    const content = load<i32>(row, 20) << FLAG_BITS
    let verdict = 0
    if ((flags & SEEN) === 0) store<i32>(value, (flags & ANSWERED) | SEEN | content)
    else verdict = flags >> FLAG_BITS === content >> FLAG_BITS ? REPEATED : REPEATED | CONFLICT
    if ((flags & ANSWERED) !== 0) verdict = (verdict & CONFLICT) | COMPLETED
    if (verdict !== 0) others++
    store<i32>(row, verdict)
  }
  return count
}

/** Reads where the fingerprints stand, so that what follows does not wait for the memory one by one. */
function touch(from: i32, end: i32, capacity: i32): void {
  let sum = 0
  for (let row = from; row < end; row += KEY_COLUMNS * 4) sum ^= load<i32>(home(row + 4, capacity))
  store<i32>(scratch + HEADER, sum)
}

/** Where the values of a fingerprint are, which is added where it is not there; -1: no room. */
function place(words: i32, capacity: i32): i32 {
  const segment: i32 = load<u8>(words, 3)
  const start = startOf(segment, capacity)
  const first = load<i32>(words, 4)
  const second = load<i32>(words, 8)
  const last = load<i32>(words, 12)
  const third = last === 0 ? 1 : last
  let at = home(words, capacity)
  for (let stored = load<i32>(at, 8); stored !== 0; stored = load<i32>(at, 8)) {
    if (stored === third && load<i32>(at) === first && load<i32>(at, 4) === second)
      return at + VALUE
    at += SLOT
    if (at === start + capacity * SLOT) at = start
  }
  const size = load<i32>(segment * 4) + 1
  // FULL of fingerprint-table.ts.
  if (size * 4 > capacity * 3) return -1
  store<i32>(segment * 4, size)
  store<i32>(at, first)
  store<i32>(at, second, 4)
  store<i32>(at, third, 8)
  return at + VALUE
}

/** Where the search for a fingerprint begins: in the order of their first stored words. */
function home(words: i32, capacity: i32): i32 {
  const first = u64(load<u32>(words, 4))
  const place = i32((first * u64(capacity)) >>> 32)
  return startOf(load<u8>(words, 3), capacity) + place * SLOT
}

function startOf(segment: i32, capacity: i32): i32 {
  return SEGMENTS * 4 + segment * capacity * SLOT
}
