import type { LineJudge } from './line-judge.ts'

/** What a look over a whole block tells. */
export interface BlockVerdict {
  /** Every line is clean and has its line feed. */
  clean: boolean
  /** Lines in the block, where it is clean. */
  lines: number
}

/**
 * Looks over a block until the first line that is not clean: nearly all blocks are, and then nothing
 * else has to be known of them.
 *
 * @param bytes with a line feed at `end` and the scanner's PADDING behind it
 */
export function lookOver(judge: LineJudge, bytes: Buffer, end: number): BlockVerdict {
  judge.begin(bytes, end)
  let lines = 0
  for (let at = 0; ; at = judge.end + 1) {
    at = judge.passClean(at)
    lines += judge.passed
    if (at >= end) return { clean: true, lines }
    if (!judge.line(at) || !judge.terminated) return { clean: false, lines: 0 }
    lines++
  }
}
