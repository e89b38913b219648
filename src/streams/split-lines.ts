import { isUtf8 } from 'node:buffer'
import { pipeline, Readable } from 'node:stream'
import split2 from 'split2'
import { lineKey } from '../core/key.ts'
import type { LineBlock } from './line-blocks.ts'

/** A line of a file, its line feed excluded. */
export interface TextLine {
  file: string
  /** From 1. */
  line: number
  text: string
  /** The bytes, where they are no UTF-8: `text` is empty then. */
  bytes: Buffer | undefined
  /** Of a line that is too long to be asked, all that is kept: its key. */
  longKey: string | undefined
}

/** Bytes of a line that is given: a string holds 2^29, in which an answer must have room beside it. */
export const LONGEST_LINE = 256 * 1024 * 1024

export interface SplitOptions {
  /** Called behind the last line with the number of the one in which damaged data ends, if any. */
  onCut?: (line: number) => void
  /** Bytes of a line at most. */
  longest?: number
}

/** Begins a stand-in for a line that a string cannot hold; no JSON begins so. */
const STAND_IN = '\0'
/** Begins that of one which is too long; base64 has no such character. */
const LONG = `${STAND_IN}:`

/**
 * Splits blocks into lines as text. split2 decodes, and would put U+FFFD for bytes that are no
 * UTF-8: such lines go through it as base64, so that their bytes can still be kept.
 *
 * @throws what the blocks throw, behind the last line before it
 */
export async function* splitLines(
  blocks: AsyncIterable<LineBlock>,
  file: string,
  { onCut, longest = LONGEST_LINE }: SplitOptions = {},
): AsyncGenerator<TextLine, void, void> {
  let line = 0
  const split = split2('\n', (text: string): TextLine => {
    line++
    if (!text.startsWith(STAND_IN))
      return { file, line, text, bytes: undefined, longKey: undefined }
    if (text.startsWith(LONG)) {
      return { file, line, text: '', bytes: undefined, longKey: text.slice(LONG.length) }
    }
    const bytes = Buffer.from(text.slice(1), 'base64')
    return { file, line, text: '', bytes, longKey: undefined }
  })
  const source = new WholeLines(blocks, longest)
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
  #longest: number

  constructor(blocks: AsyncIterable<LineBlock>, longest: number) {
    this.#blocks = blocks
    this.#longest = longest
  }

  /** The blocks, copied since they are only valid until the next one, with stand-ins where needed. */
  async *pieces(): AsyncGenerator<Buffer, void, void> {
    try {
      for await (const { bytes, end, terminated, cut } of this.#blocks) {
        this.cut = cut && !terminated
        const block = bytes.subarray(0, this.cut ? bytes.lastIndexOf(0x0a, end - 1) + 1 : end)
        const isText = block.length <= this.#longest && isUtf8(block)
        const plain = isText && block[0] !== 0 && !block.includes('\n\0')
        if (plain) yield Buffer.from(block)
        else yield* withStandIns(block, this.#longest)
      }
    } catch (error) {
      this.failure = { error }
    }
  }
}

function* withStandIns(block: Buffer, longest: number): Generator<Buffer, void, void> {
  for (let at = 0; at < block.length; ) {
    const lineFeed = block.indexOf(0x0a, at)
    const end = lineFeed < 0 ? block.length : lineFeed
    const lineEnd = lineFeed < 0 ? '' : '\n'
    const line = block.subarray(at, end)
    if (line.length > longest) yield Buffer.from(`${LONG}${lineKey(block, at, end)}${lineEnd}`)
    else if (isUtf8(line) && line[0] !== 0) yield Buffer.concat([line, Buffer.from(lineEnd)])
    else yield Buffer.from(`${STAND_IN}${line.toString('base64')}${lineEnd}`)
    at = end + 1
  }
}
