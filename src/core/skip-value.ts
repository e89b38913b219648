const QUOTE = 0x22
const BACKSLASH = 0x5c
const COMMA = 0x2c
const OPEN_BRACE = 0x7b
const CLOSE_BRACE = 0x7d
const OPEN_BRACKET = 0x5b
const CLOSE_BRACKET = 0x5d

/** Strings up to this length are read byte by byte: a native search costs as much. */
const SHORT = 48

/**
 * The offset behind the value at `start`, in bytes that the one scanner has found to be JSON: only
 * then may what lies between two quotes be passed over unread, at the speed of a native search.
 */
export function skipValue(bytes: Buffer, start: number): number {
  const first = bytes[start]
  if (first === QUOTE) return skipString(bytes, start)
  if (first !== OPEN_BRACE && first !== OPEN_BRACKET) return scalarEnd(bytes, start)
  let depth = 0
  for (let at = start; ; ) {
    const byte = bytes[at]
    if (byte === QUOTE) {
      at = skipString(bytes, at)
      continue
    }
    at++
    if (byte === OPEN_BRACE || byte === OPEN_BRACKET) depth++
    else if ((byte === CLOSE_BRACE || byte === CLOSE_BRACKET) && --depth === 0) return at
  }
}

/** The offset behind the string token at `start`, its closing quote included. */
export function skipString(bytes: Buffer, start: number): number {
  const near = start + SHORT
  for (let at = start + 1; at < near; at++) {
    const byte = bytes[at]
    if (byte === QUOTE) return at + 1
    if (byte === BACKSLASH) at++
  }
  for (let at = near; ; ) {
    const quote = bytes.indexOf(QUOTE, at)
    let backslash = quote
    while (bytes[backslash - 1] === BACKSLASH) backslash--
    if ((quote - backslash) % 2 === 0) return quote + 1
    at = quote + 1
  }
}

function scalarEnd(bytes: Buffer, start: number): number {
  let at = start
  for (;;) {
    const byte = bytes[at]!
    if (byte <= 0x20 || byte === COMMA || byte === CLOSE_BRACE || byte === CLOSE_BRACKET) return at
    at++
  }
}
