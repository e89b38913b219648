/** Where the record of a line begins behind the white space before it. */
export function recordStart(bytes: Uint8Array, start: number, end: number): number {
  let at = start
  while (at < end && bytes[at]! <= 0x20) at++
  return at
}

/** Where the record of a line ends before the white space behind it; `start` for a blank line. */
export function recordEnd(bytes: Uint8Array, start: number, end: number): number {
  let at = end
  while (at > start && bytes[at - 1]! <= 0x20) at--
  return at
}
