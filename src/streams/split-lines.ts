import { isUtf8 } from 'node:buffer'
import { pipeline, Readable } from 'node:stream'
import split2 from 'split2'
import type { LineBlock } from './line-blocks.ts'

/** A line of a file, its line feed excluded. */
export interface TextLine {
  file: string
  /** From 1. */
  line: number
  text: string
  /** The bytes, where they are no UTF-8: `text` is empty then. */
  bytes: Buffer | undefined
}

export interface SplitOptions {
  /** Called behind the last line with the number of the one in which damaged data ends, if any. */
  onCut?: (line: number) => void
}

/** Begins a stand-in for a line that a string cannot hold; no JSON begins so. */
const STAND_IN = '\0'

/**
 * Splits blocks into lines as text. split2 decodes, and would put U+FFFD for bytes that are no
 * UTF-8: such lines go through it as base64, so that their bytes can still be kept.
 *
 * @throws what the blocks throw, behind the last line before it
 */
export async function* splitLines(
  blocks: AsyncIterable<LineBlock>,
  file: string,
  { onCut }: SplitOptions = {},
): AsyncGenerator<TextLine, void, void> {
  let line = 0
  const split = split2('\n', (text: string): TextLine => {
    line++
    if (!text.startsWith(STAND_IN)) return { file, line, text, bytes: undefined }
    return { file, line, text: '', bytes: Buffer.from(text.slice(1), 'base64') }
  })
  const source = new WholeLines(blocks)
  // An early end of the iteration ends the source.
  pipeline(Readable.from(source.pieces(), { objectMode: false, highWaterMark: 1 }), split, () => {})
  yield* split as AsyncIterable<TextLine>
  if (source.cut) onCut?.(line + 1)
  if (source.failure !== undefined) throw source.failure.error
}

/**
 * What blocks hold for split2, to which an error of theirs comes as their end: it would drop the lines
 * that it has not given yet.
 */
class WholeLines {
  /** The data ended inside a line, which is not given. */
  cut = false
  failure: { error: unknown } | undefined
  #blocks: AsyncIterable<LineBlock>

  constructor(blocks: AsyncIterable<LineBlock>) {
    this.#blocks = blocks
  }

  /** The blocks, copied since they are only valid until the next one, with stand-ins where needed. */
  async *pieces(): AsyncGenerator<Buffer, void, void> {
    try {
      for await (const { bytes, end, terminated, cut } of this.#blocks) {
        this.cut = cut && !terminated
        const block = bytes.subarray(0, this.cut ? bytes.lastIndexOf(0x0a, end - 1) + 1 : end)
        const plain = isUtf8(block) && block[0] !== 0 && !block.includes('\n\0')
        yield plain ? Buffer.from(block) : withStandIns(block)
      }
    } catch (error) {
      this.failure = { error }
    }
  }
}

function withStandIns(block: Buffer): Buffer {
  const pieces: Buffer[] = []
  for (let at = 0; at < block.length; ) {
    const lineFeed = block.indexOf(0x0a, at)
    const end = lineFeed < 0 ? block.length : lineFeed
    const line = block.subarray(at, end)
    const plain = isUtf8(line) && line[0] !== 0
    pieces.push(plain ? Buffer.from(line) : Buffer.from(STAND_IN + line.toString('base64')))
    if (lineFeed >= 0) pieces.push(Buffer.from('\n'))
    at = end + 1
  }
  return Buffer.concat(pieces)
}
