import { kernelOf } from './kernel.ts'
import type { LongStrings } from './long-strings.ts'
import { WordView } from './word-view.ts'

const QUOTE = 0x22
const BACKSLASH = 0x5c
const COMMA = 0x2c
const OPEN_BRACE = 0x7b
const CLOSE_BRACE = 0x7d
const OPEN_BRACKET = 0x5b
const CLOSE_BRACKET = 0x5d

/** Strings up to about this length are read byte by byte, */
const SHORT = 12
/** up to about this one by words, and longer ones by the kernel or a native search. */
const LONG = 128

const words = new WordView()

/**
 * The offset behind the value at `start`, in bytes that the one scanner has found to be JSON: only
 * then may what lies between two quotes be passed over unread, at the speed of a native search.
 *
 * @param longStrings those of the scanner, which need not be searched for their ends
 */
export function skipValue(bytes: Buffer, start: number, longStrings?: LongStrings): number {
  const first = bytes[start]
  if (first === QUOTE) return skipString(bytes, start, longStrings)
  if (first !== OPEN_BRACE && first !== OPEN_BRACKET) return scalarEnd(bytes, start)
  let depth = 0
  for (let at = start; ; ) {
    const byte = bytes[at]
    if (byte === QUOTE) {
      at = skipString(bytes, at, longStrings)
      continue
    }
    at++
    if (byte === OPEN_BRACE || byte === OPEN_BRACKET) depth++
    else if ((byte === CLOSE_BRACE || byte === CLOSE_BRACKET) && --depth === 0) return at
  }
}

/** The offset behind the string token at `start`, its closing quote included. */
export function skipString(bytes: Buffer, start: number, longStrings?: LongStrings): number {
  let at = start + 1
  for (const near = at + SHORT; at < near; at++) {
    const byte = bytes[at]
    if (byte === QUOTE) return at + 1
    if (byte === BACKSLASH) at++
  }
  const known = longStrings === undefined ? -1 : longStrings.endOf(start)
  if (known >= 0) return known
  const view = words.of(bytes)
  for (const far = Math.min(at + LONG, bytes.length - 4); at < far; ) {
    const stops = stopsIn(view.getInt32(at, true))
    if (stops === 0) {
      at += 4
      continue
    }
    at += (24 - Math.clz32(stops & -stops)) >> 3
    if (bytes[at] === QUOTE) return at + 1
    at += 2
  }
  return longStringEnd(bytes, at)
}

function longStringEnd(bytes: Buffer, start: number): number {
  const kernel = kernelOf(bytes)
  if (kernel !== undefined) return kernel.run.stringEnd(start)
  for (let at = start; ; ) {
    const quote = bytes.indexOf(QUOTE, at)
    let backslash = quote
    while (backslash > at && bytes[backslash - 1] === BACKSLASH) backslash--
    if ((quote - backslash) % 2 === 0) return quote + 1
    at = quote + 1
  }
}

/** The high bits of the bytes that are a quote or a backslash; exact for the first of them. */
function stopsIn(word: number): number {
  const quotes = word ^ 0x22222222
  const backslashes = word ^ 0x5c5c5c5c
  return (
    (((quotes - 0x01010101) & ~quotes) | ((backslashes - 0x01010101) & ~backslashes)) & 0x80808080
  )
}

function scalarEnd(bytes: Buffer, start: number): number {
  let at = start
  for (;;) {
    const byte = bytes[at]!
    if (byte <= 0x20 || byte === COMMA || byte === CLOSE_BRACE || byte === CLOSE_BRACKET) return at
    at++
  }
}
