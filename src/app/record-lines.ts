import { isUtf8 } from 'node:buffer'
import type { ValueRange } from '../core/field.ts'
import { hasBom } from '../core/file-kind.ts'
import type { LineJudge, LinePolicy } from '../core/line-judge.ts'
import type { LineBlock } from '../streams/line-blocks.ts'

/** Lines that can be used as records: what is JSON, however odd. */
export const RECORD_POLICY: LinePolicy = {
  maxDepth: Number.MAX_SAFE_INTEGER,
  allow: new Set(['duplicate-key', 'lone-surrogate', 'too-deep']),
}

/**
 * Judges the lines of a block one after the other.
 *
 * @param use gets where the line starts, whether it is clean, and its number; the judge tells the rest
 * @returns the number of the line behind the block
 */
export function eachLine(
  judge: LineJudge,
  { bytes, end }: LineBlock,
  firstLine: number,
  use: (start: number, clean: boolean, line: number) => void,
): number {
  let line = firstLine
  judge.begin(bytes, end)
  for (let at = 0; at < end; line++) {
    const start = at
    const clean = judge.line(start)
    at = judge.terminated ? judge.end + 1 : judge.end
    use(start, clean, line)
  }
  return line
}

/**
 * The value of a line that the judge did not find clean, without the BOM and NULs that an editor or
 * a crash put around it; the scanner has then read it.
 *
 * @returns undefined where the rest is no value either
 */
export function contentOf(
  judge: LineJudge,
  bytes: Buffer,
  lineStart: number,
): ValueRange | undefined {
  let start = lineStart
  let end = judge.end
  for (;;) {
    if (hasBom(bytes, start, end)) start += 3
    else if (start < end && isFraming(bytes[start]!)) start++
    else break
  }
  while (end > start && isFraming(bytes[end - 1]!)) end--
  if (start === end) return undefined
  const first = bytes[start]!
  // A bare scalar at the end of a file may be half of one, and is no record anyway.
  if (first !== 0x7b && first !== 0x5b) return undefined
  if (!isUtf8(bytes.subarray(start, end)) || judge.scanner.value(start) !== end) return undefined
  return { start, end }
}

function isFraming(byte: number): boolean {
  return byte === 0 || byte === 0x20 || byte === 0x09 || byte === 0x0d
}
