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

/** Begins a stand-in for a line that a string cannot hold; no JSON begins so. */
const STAND_IN = '\0'

/**
 * Splits blocks into lines as text. split2 decodes, and would put U+FFFD for bytes that are no
 * UTF-8: such lines go through it as base64, so that their bytes can still be kept.
 */
export function splitLines(
  blocks: AsyncIterable<LineBlock>,
  file: string,
): AsyncIterable<TextLine> {
  let line = 0
  const split = split2('\n', (text: string): TextLine => {
    line++
    if (!text.startsWith(STAND_IN)) return { file, line, text, bytes: undefined }
    return { file, line, text: '', bytes: Buffer.from(text.slice(1), 'base64') }
  })
  // An error of the source ends the iteration with it; an early end of the iteration ends the source.
  pipeline(
    Readable.from(decodable(blocks), { objectMode: false, highWaterMark: 1 }),
    split,
    () => {},
  )
  return split as AsyncIterable<TextLine>
}

/** The blocks, copied since they are only valid until the next one, with stand-ins where needed. */
async function* decodable(blocks: AsyncIterable<LineBlock>): AsyncGenerator<Buffer, void, void> {
  for await (const { bytes, end } of blocks) {
    const block = bytes.subarray(0, end)
    const plain = isUtf8(block) && block[0] !== 0 && !block.includes('\n\0')
    yield plain ? Buffer.from(block) : withStandIns(block)
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
