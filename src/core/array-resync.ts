/**
 * Where the elements of a JSON array go on behind damage. An object is taken for the next element
 * only on evidence, since what is nested in the damaged element must never be given as one:
 *
 * - it is whole, and a comma, the array's end, or another object follows it;
 * - a comma or a whole object stands before it, or else it has the keys of an element near it;
 * - the last few whole elements have its keys or its first key, and none of them has an object
 *   inside that looks like it. Where they say nothing or both, the objects behind it decide: they
 *   must lead to one that is an element, to the end of the array and the file, or be very many. A list
 *   that ends before the array does is nested.
 *
 * Every answer depends on the bytes alone, not on how many of them were there at first.
 */

import {
  type Filled,
  isFraming,
  mayFollow,
  nextToken,
  WAIT,
  type Whole,
  wholeObject,
} from './array-reading.ts'
import { type ElementLooks, type Look, lookOf } from './element-looks.ts'
import { JsonGrammar } from './json-grammar.ts'
import { parseString } from './json-string.ts'
import { readTorn } from './repair-torn.ts'
import type { Effort } from './search-effort.ts'

const QUOTE = 0x22
const COMMA = 0x2c
const COLON = 0x3a
const CLOSE_BRACKET = 0x5d
const OPEN_BRACE = 0x7b
const CLOSE_BRACE = 0x7d

/** Objects, or their bytes, that are looked through for the end of the list that they are in. */
const SIBLINGS = 64
const SIBLING_BYTES = 4 * 1024 * 1024
/** Where nothing is known of the elements, only bytes bound that. */
const SIBLING_BYTES_ALONE = 16 * 1024 * 1024
/** One search behind one damaged place. */
export class ArrayResync {
  /** Offset up to which there is no element. */
  from: number
  #start: number
  #looks: ElementLooks
  /** Keys of the damaged element, as far as it is whole. */
  #keys: readonly string[]
  #effort: Effort
  #isSure = false
  /** Bytes that must be there before another look is worth it. */
  #wanted = 0

  /**
   * @param read as far as the damage was noticed
   * @param isElement whether an element begins at `start`, and not what follows an array
   */
  constructor(
    read: Filled,
    start: number,
    isElement: boolean,
    looks: ElementLooks,
    effort: Effort,
  ) {
    this.#start = start
    this.#effort = effort
    this.from = isElement ? start + 1 : start
    this.#looks = looks
    this.#keys = isElement ? wholeKeys(read.bytes, start, read.end) : []
  }

  /**
   * Looks for the beginning of the next element.
   *
   * @param limit only before this offset
   * @returns its offset, -1 where there is none, undefined where more bytes are needed
   */
  search(filled: Filled, limit: number): number | undefined {
    if (filled.end < this.#wanted && !filled.isAll) return undefined
    const bytes = filled.bytes.subarray(0, filled.end)
    for (;;) {
      const at = bytes.indexOf(OPEN_BRACE, this.from)
      if (at < 0 || at >= limit) {
        this.from = Math.max(this.from, Math.min(limit, filled.end))
        return -1
      }
      const next = this.#judge(filled, at)
      if (next === WAIT) {
        this.#wanted = at + 2 * (filled.end - at)
        this.from = at
        return undefined
      }
      if (next === at) return at
      this.from = next
    }
  }

  /**
   * Whether an element may begin at `at`, and neither something nested nor the rest of a string: an
   * object that the search would find, or a whole value of another kind.
   */
  mayBegin(filled: Filled, at: number): boolean | undefined {
    const { bytes, end, isAll } = filled
    if (bytes[at] === COMMA || bytes[at] === CLOSE_BRACKET) return true
    if (bytes[at] === OPEN_BRACE) {
      const next = this.#judge(filled, at)
      return next === WAIT ? undefined : next === at
    }
    const grammar = new JsonGrammar()
    const stop = grammar.feed(bytes, at, end)
    if (stop < 0) return isAll ? grammar.complete : undefined
    return grammar.complete && mayFollow(bytes, stop)
  }

  /** Whether something is there that only an element looks like. */
  findsElement(filled: Filled): boolean {
    this.#isSure = true
    return (this.search(filled, filled.end) ?? -1) >= 0
  }

  /** Moves the offsets when the caller has moved the bytes. */
  shift(by: number): void {
    this.#start -= by
    this.from -= by
    this.#wanted -= by
  }

  /** Begins again behind what was given up. */
  giveUp(): void {
    this.#start = this.from
  }

  /** Returns `at` where an element begins there, else where to look on. */
  #judge(filled: Filled, at: number): number | typeof WAIT {
    const { bytes } = filled
    const whole = wholeObject(filled, at)
    if (whole === WAIT) return WAIT
    if (typeof whole === 'number') {
      if (this.#isSure) return at + 1
      if (this.#effort.isTooMuch(whole - at, at)) return Math.max(whole, at + 1)
      return this.#isBrokenElement(bytes, at, whole) ? at : at + 1
    }
    const look = lookOf(bytes, at, whole.end)
    if (look === undefined || !mayFollow(bytes, whole.follows)) return whole.end
    const isElement = this.#looks.mayBeElement(look, bytes)
    const isNested = this.#looks.mayBeNested(look, bytes)
    if (this.#isSure) {
      const isSure = !isNested && this.#looks.hasSame(look, bytes) && this.#isApart(bytes, at)
      return isSure ? at : whole.end
    }
    if (isNested && !isElement) return whole.end
    if (!this.#isApart(bytes, at) && (isNested || !this.#looks.hasSame(look, bytes)))
      return whole.end
    if (isElement && !isNested) return at
    if (!isElement && !this.#isOther(look)) return whole.end
    return this.#bySiblings(filled, at, whole, look)
  }

  /** Whether it cannot be what is left of the damaged element: that has one of its keys already. */
  #isOther(look: Look): boolean {
    if (this.#keys.length === 0) return true
    if (this.#looks.isEmpty) return look.first === this.#keys[0]
    return (JSON.parse(look.set) as string[]).some((key) => this.#keys.includes(key))
  }

  /** Whether another element begins that is broken too. */
  #isBrokenElement(bytes: Buffer, at: number, end: number): boolean {
    const first = this.#isApart(bytes, at) ? firstKey(bytes, at, end) : undefined
    return first !== undefined && this.#isElement(bytes, { first, set: '' })
  }

  /** Decides by the objects that follow in the same list. */
  #bySiblings(filled: Filled, at: number, first: Whole, look: Look): number | typeof WAIT {
    const { bytes } = filled
    const isAlone = this.#looks.isEmpty && this.#keys.length === 0
    const most = first.end + (isAlone ? SIBLING_BYTES_ALONE : SIBLING_BYTES)
    let { follows } = first
    for (let count = 0; isAlone || count < SIBLINGS; count++) {
      if (follows < 0) return at
      if (bytes[follows] === CLOSE_BRACKET) return this.#byEnd(filled, at, follows)
      const next = bytes[follows] === COMMA ? nextToken(filled, follows + 1) : follows
      if (next === WAIT) return WAIT
      const sibling = bytes[next] === OPEN_BRACE ? wholeObject(filled, next) : next
      if (sibling === WAIT) return WAIT
      if (typeof sibling === 'number' || !mayFollow(bytes, sibling.follows)) {
        const stop = typeof sibling === 'number' ? sibling : sibling.end
        if (stop < 0 || stop === filled.end) return at
        // Damage again: the first key of the damaged element is what is left to go by.
        const isLikeDamaged = this.#looks.isEmpty && look.first === this.#keys[0]
        return isLikeDamaged ? at : Math.max(stop, first.end)
      }
      if (this.#isElement(bytes, lookOf(bytes, next, sibling.end))) return at
      if (sibling.end > most) break
      follows = sibling.follows
    }
    return at
  }

  #byEnd(filled: Filled, at: number, bracket: number): number | typeof WAIT {
    const next = nextToken(filled, bracket + 1)
    if (next === WAIT) return WAIT
    return next < 0 ? at : bracket + 1
  }

  #isElement(bytes: Buffer, look: Look | undefined): boolean {
    if (look === undefined) return false
    return this.#looks.mayBeElement(look, bytes) && !this.#looks.mayBeNested(look, bytes)
  }

  /** Whether a comma or the end of an object stands before it. */
  #isApart(bytes: Buffer, at: number): boolean {
    let before = at - 1
    while (before >= this.#start && isFraming(bytes[before]!)) before--
    return before >= this.#start && (bytes[before] === COMMA || bytes[before] === CLOSE_BRACE)
  }
}

/**
 * Whether the object from `start` to `end` was closed too early: the string at `member`, up to
 * `colon`, is a key of its own. It is not where elements near have the same keys, or where it has that
 * member already: then the next element lost its opening brace.
 */
export function isClosedEarly(
  filled: Filled,
  { start, end }: { start: number; end: number },
  member: { start: number; colon: number },
  looks: ElementLooks,
): boolean {
  const { bytes } = filled
  const whole = bytes[start] === OPEN_BRACE ? wholeObject(filled, start) : start
  if (typeof whole !== 'object' || whole.end !== end) return true
  const look = lookOf(bytes, start, end)
  if (look === undefined || looks.hasSame(look, bytes)) return false
  const isKey = bytes[member.start] === QUOTE && bytes[member.colon] === COLON
  if (!isKey || new JsonGrammar().feed(bytes, member.start, member.colon) >= 0) return true
  const key = stringBefore(bytes, member.start, member.colon)
  return !(JSON.parse(look.set) as string[]).includes(key)
}

/** The top-level keys of an object up to its damage, which may be in one that has no value. */
function wholeKeys(bytes: Buffer, start: number, end: number): readonly string[] {
  if (bytes[start] !== OPEN_BRACE) return []
  const stop = new JsonGrammar().feed(bytes, start, end)
  const torn = readTorn(bytes, start, stop < 0 ? end : stop)
  if (torn === undefined) return []
  const { completeEnd, keyEnd } = torn.open[0]!
  return completeEnd > keyEnd ? torn.keys : torn.keys.slice(0, -1)
}

/** The first key of an object that may be broken behind it. */
function firstKey(bytes: Buffer, start: number, end: number): string | undefined {
  if (bytes[start] !== OPEN_BRACE) return undefined
  const grammar = new JsonGrammar()
  for (let at = start; at < end && grammar.feed(bytes, at, at + 1) < 0; at++) {
    if (grammar.state === 'value') return stringBefore(bytes, grammar.stringStart, at)
  }
  return undefined
}

/** The string token at `start`, which ends before `end`. */
function stringBefore(bytes: Buffer, start: number, end: number): string {
  return parseString(bytes, start, bytes.lastIndexOf(QUOTE, end) + 1)
}
