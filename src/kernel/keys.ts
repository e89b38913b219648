import { behindBlanks } from './bytes'
import { contentHash } from './hash'
import { findMembers, writeKey } from './names'

/** 32-bit numbers in a row: of KeyTable in key-look.ts. */
export const KEY_COLUMNS: i32 = 6

/**
 * Writes the row of a KeyTable for the record read last, which lies at `start` to `end`. Behind the
 * names of keys stands that of the member whose records are left to JavaScript.
 *
 * @returns false for a record of which more has to be known than is known here
 */
export function keyRow(start: i32, end: i32, keys: i32, nextLine: i32, row: i32): bool {
  const met = findMembers(keys + 1)
  if (met >> keys !== 0 || !writeKey(met, keys, row + 4)) return false
  store<i32>(row, nextLine)
  store<i32>(row + 20, contentHash(behindBlanks(start), end))
  return true
}
