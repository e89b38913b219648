/** Frames and blocks of zstd as RFC 8878 lays them out. */

import type { HeaderForm } from './pieces.ts'

const MAGIC = Buffer.from([0x28, 0xb5, 0x2f, 0xfd])
/** The first bytes of a header: magic and descriptor, which tells how long it is. */
export const HEADER_START = 5
/** A skippable frame's magic and size. */
export const SKIPPABLE_HEADER = 8
export const BLOCK_HEADER = 3
export const CHECKSUM = 4

/** Flags of the descriptor; the lowest two bits tell the size of the dictionary's id. */
const CHECKSUM_FLAG = 4
const RESERVED = 8
const SINGLE_SEGMENT = 32

/** Blocks are no larger than this, and than the window. */
export const LARGEST_BLOCK = 128 * 1024

/** Magic, no reserved flag. */
export const ZSTD_HEADER: HeaderForm = {
  magic: MAGIC,
  telling: HEADER_START,
  mayBegin: (bytes) => hasMagic(bytes) && (bytes[4]! & RESERVED) === 0,
}

/** What a frame's header says. */
export interface FrameHeader {
  /** Of memory: so far back data is referred to. */
  window: number
  /** Of all data in the frame, where that is said. */
  contentSize: number | undefined
  /** 0 where none is needed. */
  dictionary: number
  hasChecksum: boolean
}

/** What a block's header says. */
export interface BlockHeader {
  isLast: boolean
  /** Whether it holds no data. */
  isEmpty: boolean
  isCompressed: boolean
  /** Bytes behind the header. */
  length: number
}

/** Whether a frame with data begins so. */
export function hasMagic(bytes: Buffer): boolean {
  return bytes.subarray(0, MAGIC.length).equals(MAGIC)
}

/** Whether these bytes, at the end of a file, are the begin of a magic number. */
export function isCutMagic(bytes: Buffer): boolean {
  return bytes.length > 0 && MAGIC.subarray(0, bytes.length).equals(bytes)
}

/** Whether a frame begins so that holds nothing to decompress. */
export function isSkippable(bytes: Buffer): boolean {
  return bytes.length >= 4 && bytes.readUInt32LE(0) >>> 4 === 0x184d2a5
}

/** How long a frame's header is, in bytes. */
export function headerLength(descriptor: number): number {
  const hasWindow = (descriptor & SINGLE_SEGMENT) === 0
  return HEADER_START + Number(hasWindow) + idLength(descriptor) + sizeLength(descriptor)
}

/** @param bytes the whole header */
export function frameHeader(bytes: Buffer): FrameHeader {
  const descriptor = bytes[4]!
  const idAt = HEADER_START + (descriptor & SINGLE_SEGMENT ? 0 : 1)
  const sizeAt = idAt + idLength(descriptor)
  const contentSize = contentSizeOf(bytes.subarray(sizeAt))
  return {
    window: descriptor & SINGLE_SEGMENT ? contentSize! : windowOf(bytes[HEADER_START]!),
    contentSize,
    dictionary: idAt === sizeAt ? 0 : bytes.readUIntLE(idAt, sizeAt - idAt),
    hasChecksum: (descriptor & CHECKSUM_FLAG) !== 0,
  }
}

/**
 * A block's header; undefined where the bytes are none.
 *
 * @param window of its frame
 */
export function blockHeader(bytes: Buffer, window: number): BlockHeader | undefined {
  if (bytes.length < BLOCK_HEADER) return undefined
  const header = bytes.readUIntLE(0, BLOCK_HEADER)
  const type = (header >> 1) & 3
  const size = header >> 3
  if (type === 3 || size > Math.min(window, LARGEST_BLOCK)) return undefined
  return {
    isLast: (header & 1) === 1,
    isEmpty: size === 0,
    isCompressed: type === 2,
    // A byte to repeat is one byte.
    length: type === 1 ? 1 : size,
  }
}

/** Where the magic number stands in `body`, or begins in its last bytes. */
export function* magicsIn(body: Buffer, ahead: Buffer): Generator<number, void, void> {
  for (let at = body.indexOf(MAGIC); at >= 0; at = body.indexOf(MAGIC, at + 1)) yield at
  const tail = body.subarray(Math.max(0, body.length - MAGIC.length + 1))
  const at = Buffer.concat([tail, ahead.subarray(0, MAGIC.length - 1)]).indexOf(MAGIC)
  if (at >= 0) yield body.length - tail.length + at
}

/**
 * A header of eighteen bytes for a frame with this window at least, without checksum. The library
 * waits for so many before it reads one; the dictionary's id and the size are zero and not looked at.
 */
export function plainHeader(window: number): Buffer {
  const header = Buffer.alloc(18)
  MAGIC.copy(header)
  header[4] = 0b11000011
  let descriptor = 0
  while (windowOf(descriptor) < window) descriptor++
  header[HEADER_START] = descriptor
  return header
}

function windowOf(descriptor: number): number {
  const base = 2 ** (10 + (descriptor >> 3))
  return base + (base / 8) * (descriptor & 7)
}

function idLength(descriptor: number): number {
  return [0, 1, 2, 4][descriptor & 3]!
}

function sizeLength(descriptor: number): number {
  const flag = descriptor >> 6
  return flag === 0 ? Number((descriptor & SINGLE_SEGMENT) !== 0) : 2 ** flag
}

/** Two bytes begin at 256, since one byte could say less. */
function contentSizeOf(bytes: Buffer): number | undefined {
  if (bytes.length === 0) return undefined
  if (bytes.length === 8) return Number(bytes.readBigUInt64LE(0))
  return bytes.readUIntLE(0, bytes.length) + (bytes.length === 2 ? 256 : 0)
}
