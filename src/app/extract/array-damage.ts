import type { ArrayResync } from '../../core/array-resync.ts'

/** Damage behind which no element was found so far. */
export interface Damage {
  start: number
  search: ArrayResync
  /** It is no element: it follows the array. */
  isJunk: boolean
  /** Where its brackets say that it ends, -1 where they do not match. */
  end: number
  /** Where a whole value at its beginning ends, -1 where there is none. */
  wholeEnd: number
  /** How far the splitter had read. */
  noticed: number
  /** Nothing was wrong up to there. */
  isSwallowed: boolean
}

/** Moves the offsets when the caller has moved the bytes. */
export function shiftDamage(damage: Damage, by: number): void {
  damage.start -= by
  damage.end -= by
  damage.wholeEnd -= by
  damage.noticed -= by
  damage.search.shift(by)
}
