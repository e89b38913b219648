import { isUtf8 } from 'node:buffer'

/** Bytes that a tool took out of a file, and where they were. */
export interface RemovedPiece {
  file: string
  /** Line from 1; null where the lines before it were not read. */
  line: number | null
  /** Offset in the file from 0, after decompression. */
  offset: number
  code: string
  bytes: Uint8Array
}

/** A piece may be larger than a JavaScript string: its text is written in slices of this size. */
const SLICE = 1024 * 1024

/**
 * A removed piece as one JSON line, in parts: `{"file","line","offset","length","code","text"}`, or
 * `"base64"` where the bytes are no UTF-8.
 */
export function* removedPieceJson(piece: RemovedPiece): Generator<Buffer, void, void> {
  const { file, line, offset, code, bytes } = piece
  const head = JSON.stringify({ file, line, offset, length: bytes.length, code })
  yield Buffer.from(head.slice(0, -1))
  if (isUtf8(bytes)) {
    yield Buffer.from(',"text":"')
    for (let at = 0; at < bytes.length; at += SLICE) yield escaped(bytes.subarray(at, at + SLICE))
  } else {
    yield Buffer.from(',"base64":"')
    // A multiple of three, so that no padding falls between the parts.
    const step = SLICE - (SLICE % 3)
    for (let at = 0; at < bytes.length; at += step) {
      const part = bytes.subarray(at, at + step)
      yield Buffer.from(
        Buffer.from(part.buffer, part.byteOffset, part.byteLength).toString('base64'),
      )
    }
  }
  yield Buffer.from('"}\n')
}

/** The bytes of a JSON string's content: quotes, backslashes and control bytes escaped. */
function escaped(bytes: Uint8Array): Buffer {
  const out = Buffer.allocUnsafe(bytes.length * LONGEST_ESCAPE)
  let length = 0
  for (const byte of bytes) {
    const spelt = ESCAPES[byte]
    if (spelt === undefined) out[length++] = byte
    else length += spelt.copy(out, length)
  }
  return out.subarray(0, length)
}

const LONGEST_ESCAPE = 6

/** What stands for a byte in a JSON string; undefined for what stands for itself. */
const ESCAPES = Array.from({ length: 256 }, (_, byte) => {
  const isPlain = byte >= 0x20 && byte !== 0x22 && byte !== 0x5c
  return isPlain ? undefined : Buffer.from(JSON.stringify(String.fromCharCode(byte)).slice(1, -1))
})
