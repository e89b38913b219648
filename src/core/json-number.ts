const MINUS = 0x2d

/** The offset behind the number at `at`, or -1 where there is none. */
export function numberEnd(bytes: Uint8Array, start: number): number {
  let at = start
  if (bytes[at] === MINUS) at++
  if (bytes[at] === 0x30) at++
  else {
    const digits = digitsEnd(bytes, at)
    if (digits === at) return -1
    at = digits
  }
  if (bytes[at] === 0x2e) {
    const digits = digitsEnd(bytes, at + 1)
    if (digits === at + 1) return -1
    at = digits
  }
  if ((bytes[at]! | 0x20) === 0x65) {
    at++
    if (bytes[at] === 0x2b || bytes[at] === MINUS) at++
    const digits = digitsEnd(bytes, at)
    if (digits === at) return -1
    at = digits
  }
  return at
}

function digitsEnd(bytes: Uint8Array, start: number): number {
  let at = start
  while (bytes[at]! >= 0x30 && bytes[at]! <= 0x39) at++
  return at
}
