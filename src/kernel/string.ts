import { BACKSLASH, byteAt, QUOTE, stopsIn } from './bytes'

/** `b`, `f`, `n`, `r` and `t` as bits, counted from `b`. */
const ESCAPE_LETTERS: u32 = 0b1010001000000010001
const LETTER_B: u32 = 0x62

/** The last strings held half of a surrogate pair; reset by who asks. */
export let hasLoneSurrogate: bool = false

export function forgetSurrogates(): void {
  hasLoneSurrogate = false
}

/**
 * Reads a string on from `start`, which stands inside it and behind no half escape.
 *
 * @returns the offset behind the closing quote, or -1 where the string is broken
 */
export function stringEnd(start: i32): i32 {
  let at = start
  while (true) {
    const stops = stopsIn(v128.load(at))
    if (stops === 0) {
      at += 16
      continue
    }
    at += ctz(stops)
    const byte = byteAt(at)
    if (byte === QUOTE) return at + 1
    if (byte !== BACKSLASH) return -1
    at = escapeEnd(at)
    if (at < 0) return -1
  }
}

/** The offset behind the escape whose backslash is at `at`, or -1. */
function escapeEnd(at: i32): i32 {
  const letter = byteAt(at + 1)
  if (letter - LETTER_B < 19 && ((ESCAPE_LETTERS >> (letter - LETTER_B)) & 1) !== 0) return at + 2
  if (letter === QUOTE || letter === BACKSLASH || letter === 0x2f) return at + 2
  return letter === 0x75 ? unicodeEnd(at) : -1
}

/** The same where the letter is `u`; a surrogate pair is read as one. */
function unicodeEnd(at: i32): i32 {
  const unit = hexAt(at + 2)
  if (unit < 0) return -1
  if ((unit & 0xf800) !== 0xd800) return at + 6
  if (unit < 0xdc00 && load<u16>(at + 6) === 0x755c && (hexAt(at + 8) & ~0x3ff) === 0xdc00) {
    return at + 12
  }
  hasLoneSurrogate = true
  return at + 6
}

/** Four hexadecimal digits as a number; -1 where they are none. */
function hexAt(at: i32): i32 {
  let number = 0
  for (let i = 0; i < 4; i++) {
    let digit = byteAt(at + i) - 0x30
    if (digit > 9) {
      digit = (byteAt(at + i) | 0x20) - 0x61 + 10
      if (digit < 10 || digit > 15) return -1
    }
    number = (number << 4) | digit
  }
  return number
}
