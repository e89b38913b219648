import { BACKSLASH, behindBlanks, byteAt, chunkOf, isDigit, QUOTE } from './bytes'
import { contentHash, murmur128 } from './hash'
import { MEMBERS, MOST_ROWS, NAMES, ROWS, scratch } from './layout'
import { lineFeedFrom, recordLine } from './lines'
import { isSuspect, memberCount, readValue } from './value'

/** Bytes of a row: of KeyTable in key-look.ts. */
const ROW_SIZE: i32 = 24

/** Rows of the last `keyRows` that are left to JavaScript. */
let left: i32 = 0
/** A bit for each length that one of the names has: hardly another member has one of these. */
let lengths: i32 = 0

export function rowsLeft(): i32 {
  return left
}

/**
 * Writes the rows of a KeyTable for the lines from `start` on, {@link MOST_ROWS} at most. A line of
 * which more has to be known than is known here (an escape in its key, a failure record, no JSON) is
 * left to JavaScript: its row begins with the complement of where the next line starts.
 *
 * @param end behind the last line feed
 * @param names how many names of keys there are at {@link NAMES}, the first the best; behind them
 *   stands the one whose records are left to JavaScript
 * @returns how many rows, or -1 where the last line has no line feed
 */
export function keyRows(start: i32, end: i32, names: i32): i32 {
  let rows = 0
  left = 0
  lengths = lengthsOf(names)
  for (let at = start; at < end && rows < MOST_ROWS; rows++) {
    const row = scratch + ROWS + rows * ROW_SIZE
    const lineFeed = keyRow(at, end, names, row)
    if (lineFeed >= 0) {
      at = lineFeed + 1
      store<i32>(row, at)
      continue
    }
    const other = lineFeedFrom(at, end)
    if (other < 0) return -1
    at = other + 1
    store<i32>(row, ~at)
    left++
  }
  return rows
}

/** Writes one row, all but its first number; returns where the line feed is, -1 for a line that is left. */
function keyRow(start: i32, end: i32, names: i32, row: i32): i32 {
  const valueEnd = readValue(start, false)
  const lineFeed = recordLine(valueEnd)
  if (lineFeed < 0 || lineFeed >= end || isSuspect()) return -1
  const member = keyMember(names)
  if (member === 0 || !writeKey(load<i32>(member + 8), load<i32>(member + 12), row + 4)) return -1
  store<i32>(row + 20, contentHash(behindBlanks(start), valueEnd))
  return lineFeed
}

/** Writes the fingerprint of a key to `to`; false where it has an escape. */
function writeKey(start: i32, end: i32, to: i32): bool {
  if (byteAt(start) !== QUOTE) {
    murmur128(start, end, to)
    return true
  }
  for (let at = start + 1; at < end - 1; at++) if (byteAt(at) === BACKSLASH) return false
  murmur128(start + 1, end - 1, to)
  return true
}

/**
 * Where the member lies that is the key: that with the first of the names, a string or a number; of a
 * member given twice the last one counts.
 *
 * @returns 0 where there is none, or where JavaScript must look at the record
 */
function keyMember(names: i32): i32 {
  const members = scratch + MEMBERS
  let met = 0
  let best = names
  let found = 0
  for (let member = members + (memberCount - 1) * 16; member >= members; member -= 16) {
    const name = nameOf(load<i32>(member), load<i32>(member + 4), names)
    if (name < 0) continue
    if (name === names) return 0
    if (((met >> name) & 1) === 0 && name < best && isScalar(byteAt(load<i32>(member + 8)))) {
      best = name
      found = member
    }
    met |= 1 << name
  }
  return found
}

/** Which of the names, the last one included, the key token at `start` to `end` spells; -1 for none. */
function nameOf(start: i32, end: i32, names: i32): i32 {
  const length = end - start - 2
  if (length > 16 || ((lengths >> length) & 1) === 0) return -1
  const chunk = chunkOf(start + 1, length)
  for (let name = 0; name <= names; name++) {
    const same = i8x16.eq(chunk, v128.load(scratch + NAMES + name * 16))
    if (i8x16.all_true(same)) return name
  }
  return -1
}

function lengthsOf(names: i32): i32 {
  let bits = 0
  for (let name = 0; name <= names; name++) {
    const ends = i8x16.eq(v128.load(scratch + NAMES + name * 16), i8x16.splat(0))
    // A name of sixteen bytes has no zero behind it.
    bits |= 1 << ctz(i8x16.bitmask(ends) | (1 << 16))
  }
  return bits
}

function isScalar(first: u32): bool {
  return first === QUOTE || first === 0x2d || isDigit(first)
}
