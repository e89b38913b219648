import { BACKSLASH, byteAt, chunkOf, isDigit, QUOTE } from './bytes'
import { murmur128 } from './hash'
import { MEMBERS, NAMES, PLACES, scratch } from './layout'
import { memberCount } from './value'

/** A bit for each length that one of the names has: hardly another member has one of these. */
let lengths: i32 = 0

/** Begins with the first `count` names at {@link NAMES}. */
export function beginNames(count: i32): void {
  lengths = 0
  for (let name = 0; name < count; name++) {
    const ends = i8x16.eq(v128.load(scratch + NAMES + name * 16), i8x16.splat(0))
    // A name of sixteen bytes has no zero behind it.
    lengths |= 1 << ctz(i8x16.bitmask(ends) | (1 << 16))
  }
}

/**
 * Looks for the names among the members of the value read last; of a member given twice the last one
 * counts.
 *
 * @returns a bit for each name that is there; {@link memberWith} has its place
 */
export function findMembers(count: i32): i32 {
  const members = scratch + MEMBERS
  let met = 0
  for (let member = members + (memberCount - 1) * 16; member >= members; member -= 16) {
    const name = nameOf(load<i32>(member), load<i32>(member + 4), count)
    if (name < 0 || ((met >> name) & 1) !== 0) continue
    met |= 1 << name
    store<i32>(scratch + PLACES + name * 4, member)
  }
  return met
}

export function memberWith(name: i32): i32 {
  return load<i32>(scratch + PLACES + name * 4)
}

export function valueStart(member: i32): i32 {
  return load<i32>(member + 8)
}

export function valueEnd(member: i32): i32 {
  return load<i32>(member + 12)
}

/** Which of the names the string token at `start` to `end` spells; -1 for none. */
export function nameOf(start: i32, end: i32, count: i32): i32 {
  const length = end - start - 2
  if (length > 16 || ((lengths >> length) & 1) === 0) return -1
  const chunk = chunkOf(start + 1, length)
  for (let name = 0; name < count; name++) {
    const same = i8x16.eq(chunk, v128.load(scratch + NAMES + name * 16))
    if (i8x16.all_true(same)) return name
  }
  return -1
}

/**
 * Writes the fingerprint of a record's key to `to`: of the first of the names, `keys` of them, whose
 * value is a string or a number.
 *
 * @param met what `findMembers` gave
 * @returns false where there is none, or where it has an escape
 */
export function writeKey(met: i32, keys: i32, to: i32): bool {
  for (let name = 0; name < keys; name++) {
    if (((met >> name) & 1) === 0) continue
    const start = valueStart(memberWith(name))
    const end = valueEnd(memberWith(name))
    const first = byteAt(start)
    if (first === 0x2d || isDigit(first)) {
      murmur128(start, end, to)
      return true
    }
    if (first !== QUOTE) continue
    if (hasEscape(start, end)) return false
    murmur128(start + 1, end - 1, to)
    return true
  }
  return false
}

export function hasEscape(start: i32, end: i32): bool {
  for (let at = start; at < end; at++) if (byteAt(at) === BACKSLASH) return true
  return false
}
