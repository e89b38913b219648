/** Bytes one by one and sixteen at a time. */

export const QUOTE: u32 = 0x22
export const BACKSLASH: u32 = 0x5c

export function byteAt(at: i32): u32 {
  return load<u8>(at)
}

/** White space inside a line; a line feed ends it and is none. */
export function isBlank(byte: u32): bool {
  return byte === 0x20 || byte === 0x09 || byte === 0x0d
}

/** The first offset from `at` on that holds no white space. */
export function behindBlanks(at: i32): i32 {
  while (isBlank(byteAt(at))) at++
  return at
}

export function isDigit(byte: u32): bool {
  return byte - 0x30 < 10
}

/** A bit for each of sixteen bytes that ends a run of plain string content. */
export function stopsIn(chunk: v128): i32 {
  const quotes = i8x16.eq(chunk, i8x16.splat(0x22))
  const backslashes = i8x16.eq(chunk, i8x16.splat(0x5c))
  const controls = i8x16.lt_u(chunk, i8x16.splat(0x20))
  return i8x16.bitmask(v128.or(v128.or(quotes, backslashes), controls))
}

/** The sixteen bytes at `at`, of which those from `length` on become zero. */
export function chunkOf(at: i32, length: i32): v128 {
  const places = i8x16(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15)
  return v128.and(v128.load(at), i8x16.lt_u(places, i8x16.splat(length as i8)))
}
