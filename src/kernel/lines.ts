import { behindBlanks, byteAt } from './bytes'
import { deepest, isSuspect, readValue } from './value'

const LINE_FEED: u32 = 0x0a

/** Lines that `cleanLines` went over. */
let lines: i32 = 0

export function lineCount(): i32 {
  return lines
}

/**
 * Goes over lines as long as they are clean beyond doubt.
 *
 * @param start where a line begins
 * @param end behind the last line feed
 * @param maxDepth nesting beyond this is not clean
 * @param comparesKeys whether a key given twice is not
 * @returns where the first other line begins, or `end`
 */
export function cleanLines(start: i32, end: i32, maxDepth: i32, comparesKeys: bool): i32 {
  lines = 0
  for (let at = start; at < end; lines++) {
    const lineEnd = recordLine(readValue(at, comparesKeys))
    if (lineEnd < 0 || lineEnd >= end || isSuspect() || deepest > maxDepth) return at
    at = lineEnd + 1
  }
  return end
}

/** Where the line feed of a line is, of which one value ends at `valueEnd`; -1 where more follows. */
export function recordLine(valueEnd: i32): i32 {
  if (valueEnd < 0) return -1
  const at = behindBlanks(valueEnd)
  return byteAt(at) === LINE_FEED ? at : -1
}

/** Where the line that `start` lies in has its line feed, before `end`; -1 where it has none. */
export function lineFeedFrom(start: i32, end: i32): i32 {
  for (let at = start; at < end; at += 16) {
    const feeds = i8x16.bitmask(i8x16.eq(v128.load(at), i8x16.splat(0x0a)))
    if (feeds === 0) continue
    const feed = at + ctz(feeds)
    return feed < end ? feed : -1
  }
  return -1
}
