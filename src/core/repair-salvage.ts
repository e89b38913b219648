import { readTorn } from './repair-torn.ts'

const CLOSERS = { object: Buffer.from('}'), array: Buffer.from(']') }

/**
 * What a torn object has that is whole, as an object of its own: its open containers closed, its
 * complete members byte for byte, marked `"truncated":true`. The member with the cut is left out.
 *
 * @param piece a removed piece, with its line feed where it has one
 * @returns one line in parts, or undefined where the piece is no torn object
 */
export function salvage(piece: Uint8Array): Buffer[] | undefined {
  const bytes = Buffer.from(piece.buffer, piece.byteOffset, piece.byteLength)
  let end = bytes.length
  if (bytes[end - 1] === 0x0a) end--
  if (end < bytes.length && bytes[end - 1] === 0x0d) end--
  let start = 0
  while (start < end && (bytes[start] === 0x20 || bytes[start] === 0x09)) start++
  const torn = readTorn(bytes, start, end)
  if (torn === undefined) return undefined
  const { open } = torn
  const [outermost] = open
  const innermost = open.at(-1)!
  const parts: Buffer[] = [bytes.subarray(start, innermost.completeEnd)]
  for (let depth = open.length - 1; depth > 0; depth--) {
    parts.push(open[depth]!.isObject ? CLOSERS.object : CLOSERS.array)
  }
  const isEmpty = open.length === 1 && !outermost!.hasMember
  parts.push(Buffer.from(`${isEmpty ? '' : ','}"truncated":true}\n`))
  return parts
}
