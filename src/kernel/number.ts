import { byteAt, isDigit } from './bytes'

/** The offset behind the number at `start`, or -1 where there is none. */
export function numberEnd(start: i32): i32 {
  let at = start
  if (byteAt(at) === 0x2d) at++
  if (byteAt(at) === 0x30) at++
  else {
    const digits = digitsEnd(at)
    if (digits === at) return -1
    at = digits
  }
  if (byteAt(at) === 0x2e) {
    const digits = digitsEnd(at + 1)
    if (digits === at + 1) return -1
    at = digits
  }
  if ((byteAt(at) | 0x20) === 0x65) {
    at++
    if (byteAt(at) === 0x2b || byteAt(at) === 0x2d) at++
    const digits = digitsEnd(at)
    if (digits === at) return -1
    at = digits
  }
  return at
}

function digitsEnd(start: i32): i32 {
  let at = start
  while (isDigit(byteAt(at))) at++
  return at
}
