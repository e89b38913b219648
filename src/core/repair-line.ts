import { isUtf8 } from 'node:buffer'
import { hasBom } from './file-kind.ts'
import { beforeFraming, beforeNuls, findGlue } from './glue.ts'
import type { NearRecord } from './glue-near.ts'
import { JsonScanner } from './json-scan.ts'
import { readTorn } from './repair-torn.ts'

/** What can be made of a line that is not clean; offsets in the buffer. */
export interface LineParts {
  /** The records to keep, start and end of each in turn; a line of its own for each. */
  records: number[]
  /** Records that stand before the torn part; the others stand behind it. */
  before: number
  /** The torn part, to be removed. */
  torn: { start: number; end: number } | undefined
  /** The torn part has records behind it, split off on evidence. */
  glued: boolean
  /** A second torn part, behind the last record of a line without a line feed. */
  tail?: { start: number; end: number }
}

/** So many places are tried for the beginning of a torn tail behind glued records. */
const TAILS_TRIED = 16

/** Takes lines apart that the judge finds fault with, one at a time. */
export class LineSplitter {
  #scanner = new JsonScanner()

  /**
   * @param end where the line ends, its line feed excluded; the byte there is a line feed
   * @param terminated whether the line feed is the line's own
   * @param near valid records near the line, the evidence for splits
   * @returns undefined where nothing can be kept without guessing
   */
  split(
    bytes: Buffer,
    start: number,
    end: number,
    terminated: boolean,
    near: readonly NearRecord[],
  ): LineParts | undefined {
    this.#scanner.use(bytes)
    const first = skipFraming(bytes, start, end)
    if (first === end) return { records: [], before: 0, torn: undefined, glued: false }
    const last = beforeNuls(bytes, first, end)
    const objects = this.#objects(bytes, first, last)
    const rest = skipFraming(bytes, objects.at(-1) ?? first, last)
    /** White space that ends the line stays with its record, unless NULs follow it. */
    const stop = last < end ? beforeFraming(bytes, first, last) : last
    if (rest === last) {
      const behind = objects.at(-1)!
      if (skipBlank(bytes, behind, stop) === stop) objects[objects.length - 1] = stop
      return whole(objects)
    }
    const open = !terminated || last < end
    if (objects.length === 0 && this.#isValue(bytes, first, last, bytes[first - 1] === 0, open)) {
      return whole([first, stop])
    }
    const glued = this.#glue(bytes, rest, stop, objects, near)
    if (glued !== undefined || terminated) return glued
    return (
      this.#gluedTail(bytes, rest, last, objects, near) ??
      tornTail(bytes, first, last, objects, rest)
    )
  }

  /** Records glued onto a torn one, with another torn one behind them: the writer was killed twice. */
  #gluedTail(
    bytes: Buffer,
    start: number,
    end: number,
    objects: readonly number[],
    near: readonly NearRecord[],
  ): LineParts | undefined {
    let brace = end
    for (let tried = 0; tried < TAILS_TRIED && brace > start; ) {
      brace = bytes.lastIndexOf(0x7b, brace - 1)
      if (brace <= start) return undefined
      if (bytes[beforeFraming(bytes, start, brace) - 1] !== 0x7d) continue
      tried++
      if (readTorn(bytes, brace, end) === undefined) continue
      const parts = this.#glue(bytes, start, beforeFraming(bytes, start, brace), objects, near)
      if (parts !== undefined) return { ...parts, tail: { start: brace, end } }
    }
    return undefined
  }

  /** The whole objects that the range begins with, start and end of each in turn. */
  #objects(bytes: Buffer, start: number, end: number): number[] {
    const objects: number[] = []
    for (let at = start; bytes[at] === 0x7b && at < end; at = skipFraming(bytes, at, end)) {
      const behind = this.#scanner.value(at)
      if (behind < 0 || behind > end || !isUtf8(bytes.subarray(at, behind))) break
      objects.push(at, behind)
      at = behind
    }
    return objects
  }

  /**
   * Whether the range is one value. A bare number that touches a gap may be part of another one.
   *
   * @param afterGap whether NULs stand before it
   * @param open whether the range ends where more digits may be missing
   */
  #isValue(bytes: Buffer, start: number, end: number, afterGap: boolean, open: boolean): boolean {
    const at = this.#scanner.value(start)
    if (at < 0 || at > end || !isUtf8(bytes.subarray(start, at))) return false
    const isNumber = bytes[start] === 0x2d || (bytes[start]! >= 0x30 && bytes[start]! <= 0x39)
    if (isNumber && (afterGap || (open && at === end))) return false
    return skipBlank(bytes, at, end) === end
  }

  #glue(
    bytes: Buffer,
    start: number,
    end: number,
    objects: readonly number[],
    near: readonly NearRecord[],
  ): LineParts | undefined {
    const glue = findGlue(this.#scanner, bytes, start, beforeFraming(bytes, start, end), near)
    if (glue === undefined) return undefined
    const behind = glue.objects.flatMap((object, index) => {
      const next = glue.objects[index + 1]
      return [object, next === undefined ? end : beforeFraming(bytes, object, next)]
    })
    return {
      records: [...objects, ...behind],
      before: objects.length / 2,
      torn: { start, end: glue.tornEnd },
      glued: true,
    }
  }
}

function whole(records: number[]): LineParts {
  return { records, before: records.length / 2, torn: undefined, glued: false }
}

/** A last line without a line feed: what its writer had finished is kept. */
function tornTail(
  bytes: Buffer,
  start: number,
  end: number,
  objects: readonly number[],
  rest: number,
): LineParts {
  // Before a comma, a colon or a closing bracket an object is part of something larger.
  const nested = [0x2c, 0x3a, 0x5d, 0x7d].includes(bytes[rest]!)
  const records = objects.slice(0, nested ? -2 : undefined)
  const tornStart = nested ? (objects.at(-2) ?? start) : rest
  return {
    records,
    before: records.length / 2,
    torn: { start: tornStart, end },
    glued: false,
  }
}

/** Behind byte order marks, NULs and white space. */
function skipFraming(bytes: Buffer, start: number, end: number): number {
  let at = start
  for (;;) {
    const byte = bytes[at]
    if (at >= end) return end
    if (byte === 0 || byte === 0x20 || byte === 0x09 || byte === 0x0d) at++
    else if (hasBom(bytes, at, end)) at += 3
    else return at
  }
}

function skipBlank(bytes: Buffer, start: number, end: number): number {
  let at = start
  while (at < end && (bytes[at] === 0x20 || bytes[at] === 0x09 || bytes[at] === 0x0d)) at++
  return at
}
