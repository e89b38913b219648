import type { ByteReader } from '../core/byte-reader.ts'
import { PADDING } from '../core/json-scan.ts'
import { kernelBytes } from '../core/kernel.ts'
import { EXIT, ToolError } from '../core/tool-error.ts'

/**
 * Whole lines as they lie in memory: the bytes from 0 to `end`, the last of them a line feed unless
 * `terminated` is false (only a file's last block). Behind `end` there are at least PADDING bytes,
 * the first of them a line feed. Valid until the next block is asked for, or as `kept` says.
 */
export interface LineBlock {
  bytes: Buffer
  end: number
  terminated: boolean
  /** The input ended by damage here (a truncated gzip stream): its last line is cut, not torn. */
  cut: boolean
  /** Where the block begins in the file, counted after decompression. */
  offset: number
}

export interface BlockOptions {
  /** Reads are at most this long. */
  blockSize?: number | undefined
  /** Blocks that stay valid at a time, the one given last included; 1 without a word. */
  kept?: number
  /** Blocks lie in memory that other threads and, where there is such memory, the kernel can read. */
  shared?: boolean
  /** Asked before the first block is given: whether the lines so far tell what the file is. */
  headComplete?: (bytes: Buffer, end: number) => boolean
}

/** Reads are at most this long; the figure at which reading costs least on Linux and macOS. */
export const BLOCK_SIZE = 256 * 1024

/** A line ends at 0x0A and nowhere else: not at CR, not at U+2028, not at U+0085. */
const LINE_FEED = 0x0a

/**
 * Cuts what a reader gives into blocks of whole lines without copying more than the torn last line
 * of each read. While a block is worked on, the next read is already under way into another
 * buffer; a line longer than a buffer doubles it, so that a line is copied twice at most.
 *
 * @throws ToolError what the reader throws; where that is damage of the data (exit code 1, a
 *   truncated gzip stream), after the bytes that came before it
 */
export async function* lineBlocks(
  reader: ByteReader,
  options: BlockOptions = {},
): AsyncGenerator<LineBlock, void, void> {
  const { blockSize = BLOCK_SIZE, headComplete = () => true, kept = 1, shared = false } = options
  const given: Buffer[] = []
  let bytes = allocate(blockSize, shared)
  let filled = 0
  let end = 0
  let offset = 0
  let atHead = true
  let damage: ToolError | undefined
  let reading = reader.read(bytes, 0, blockSize)
  for (;;) {
    const count = await reading.catch((error: unknown) => {
      if (!(error instanceof ToolError) || error.exitCode !== EXIT.data) throw error
      damage = error
      return 0
    })
    if (count === 0) break
    const lastLineFeed = bytes.subarray(filled, filled + count).lastIndexOf(LINE_FEED)
    if (lastLineFeed >= 0) end = filled + lastLineFeed + 1
    filled += count
    if (end === 0 || (atHead && !headComplete(bytes, end))) {
      if (room(bytes, filled) === 0) bytes = larger(bytes, filled, shared)
      reading = reader.read(bytes, filled, Math.min(room(bytes, filled), blockSize))
      continue
    }
    atHead = false
    const tail = filled - end
    let spare = given.length < kept ? undefined : given.shift()
    if (spare === undefined || room(spare, tail) === 0) spare = allocate(tail + blockSize, shared)
    given.push(bytes)
    bytes.copy(spare, 0, end, filled)
    reading = reader.read(spare, tail, Math.min(room(spare, tail), blockSize))
    // The consumer may stop at this block; what the read under way then meets is of no interest.
    reading.catch(() => {})
    bytes[end] = LINE_FEED
    yield { bytes, end, terminated: true, cut: false, offset }
    offset += end
    filled = tail
    end = 0
    bytes = spare
  }
  if (filled > 0) {
    const terminated = bytes[filled - 1] === LINE_FEED
    bytes[filled] = LINE_FEED
    yield { bytes, end: filled, terminated, cut: damage !== undefined, offset }
  }
  if (damage !== undefined) throw damage
}

/** Offsets are kept as 32-bit integers. */
const LONGEST_LINE = 2 ** 31 - 1 - PADDING

function allocate(size: number, shared: boolean): Buffer {
  if (shared)
    return kernelBytes(size + PADDING) ?? Buffer.from(new SharedArrayBuffer(size + PADDING))
  return Buffer.allocUnsafeSlow(size + PADDING)
}

function room(bytes: Buffer, filled: number): number {
  return bytes.length - PADDING - filled
}

function larger(bytes: Buffer, filled: number, shared: boolean): Buffer {
  if (filled === LONGEST_LINE) {
    throw new ToolError('line-too-long', 'a line is longer than 2 GiB: this is no JSONL')
  }
  const copy = allocate(Math.min((bytes.length - PADDING) * 2, LONGEST_LINE), shared)
  bytes.copy(copy, 0, 0, filled)
  return copy
}
