/**
 * The text of a JSON string token: escapes decoded, nothing normalised.
 */

const BACKSLASH = 0x5c

/** A byte range, `end` excluded. */
export interface Bytes {
  bytes: Uint8Array
  start: number
  end: number
}

/**
 * The decoded text of the string token at `start` to `end` (quotes included) as UTF-8, so that
 * `"\u0061"` and `"a"` give the same bytes. A lone surrogate, which UTF-8 cannot hold, becomes its
 * three-byte WTF-8 form: two different ones stay different.
 *
 * @returns a range inside `bytes` where the token has no escape, else a range of its own
 */
export function stringText(bytes: Uint8Array, start: number, end: number): Bytes {
  if (!hasEscape(bytes, start, end)) return { bytes, start: start + 1, end: end - 1 }
  const text = encodeWtf8(parseString(bytes, start, end))
  return { bytes: text, start: 0, end: text.length }
}

/** Parses the string token at `start` to `end` (quotes included). */
export function parseString(bytes: Uint8Array, start: number, end: number): string {
  return JSON.parse(Buffer.from(bytes.buffer, bytes.byteOffset + start, end - start).toString())
}

/** Whether two ranges hold the same bytes. */
export function sameBytes(a: Bytes, b: Bytes): boolean {
  const length = a.end - a.start
  if (length !== b.end - b.start) return false
  for (let i = 0; i < length; i++) {
    if (a.bytes[a.start + i] !== b.bytes[b.start + i]) return false
  }
  return true
}

function hasEscape(bytes: Uint8Array, start: number, end: number): boolean {
  for (let at = start; at < end; at++) {
    if (bytes[at] === BACKSLASH) return true
  }
  return false
}

function encodeWtf8(text: string): Uint8Array {
  if (text.isWellFormed()) return Buffer.from(text)
  const pieces: Buffer[] = []
  for (const character of text) {
    const code = character.codePointAt(0) ?? 0
    const lone = code >= 0xd800 && code <= 0xdfff
    pieces.push(
      lone
        ? Buffer.from([0xed, 0x80 | ((code >> 6) & 0x3f), 0x80 | (code & 0x3f)])
        : Buffer.from(character),
    )
  }
  return Buffer.concat(pieces)
}
