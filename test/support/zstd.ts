import { spawnSync } from 'node:child_process'
import { Xxh64 } from '../../src/core/xxh64.ts'

const MAGIC = Buffer.from([0x28, 0xb5, 0x2f, 0xfd])

/** Whether there is a zstd program; else why a test is left out. */
export const noZstd = spawnSync('zstd', ['--version']).status === 0 ? false : 'no zstd program'

/** A part of a frame: bytes as they are, or a byte and how often. */
export type Part = Buffer | [byte: number, times: number]

export interface Frame {
  packed: Buffer
  text: Buffer
  /** Where each block ends, in the frame and in the text. */
  ends: { packed: number; text: number }[]
}

/** What a frame by hand has in its header. */
export interface FrameForm {
  hasChecksum?: boolean
  hasSize?: boolean
}

/** A frame of raw and RLE blocks, with a window of 1 MB. */
export function handMade(parts: Part[], { hasChecksum, hasSize }: FrameForm = {}): Frame {
  const texts = parts.map((part) => (Array.isArray(part) ? Buffer.alloc(part[1], part[0]) : part))
  const text = Buffer.concat(texts)
  const descriptor = (hasSize ? 0x80 : 0) | (hasChecksum ? 4 : 0)
  const size = Buffer.alloc(hasSize ? 4 : 0)
  if (hasSize) size.writeUInt32LE(text.length)
  const pieces: Buffer[] = [MAGIC, Buffer.of(descriptor, 10 << 3), size]
  const ends: Frame['ends'] = []
  const length = (buffers: Buffer[]): number => Buffer.concat(buffers).length
  for (const [index, part] of parts.entries()) {
    const type = Array.isArray(part) ? 1 : 0
    const body = Array.isArray(part) ? Buffer.of(part[0]) : part
    pieces.push(blockHeader(type, texts[index]!.length, index === parts.length - 1), body)
    ends.push({ packed: length(pieces), text: length(texts.slice(0, index + 1)) })
  }
  if (hasChecksum) pieces.push(checksumOf(text))
  return { packed: Buffer.concat(pieces), text, ends }
}

export function blockHeader(type: number, size: number, isLast: boolean): Buffer {
  const header = Buffer.alloc(3)
  header.writeUIntLE(Number(isLast) | (type << 1) | (size << 3), 0, 3)
  return header
}

export function checksumOf(text: Buffer): Buffer {
  const hash = new Xxh64()
  hash.update(text)
  const bytes = Buffer.alloc(8)
  bytes.writeBigUInt64LE(hash.digest())
  return bytes.subarray(0, 4)
}

/** A frame that holds nothing to decompress. */
export function skippable(content: Buffer): Buffer {
  const header = Buffer.from([0x53, 0x2a, 0x4d, 0x18, 0, 0, 0, 0])
  header.writeUInt32LE(content.length, 4)
  return Buffer.concat([header, content])
}

/** A frame of the zstd program, its blocks not known. */
export function byProgram(text: Buffer, options: string[] = []): Frame {
  const result = spawnSync('zstd', ['-q', '-c', ...options], { input: text, maxBuffer: 2 ** 28 })
  if (result.status !== 0) throw new Error(result.stderr.toString())
  return { packed: result.stdout, text, ends: [] }
}

/** What the zstd program makes of packed bytes: their text, undefined where it fails. */
export function unpackedByProgram(packed: Buffer): Buffer | undefined {
  const result = spawnSync('zstd', ['-dc'], { input: packed, maxBuffer: 2 ** 28 })
  return result.status === 0 ? result.stdout : undefined
}
