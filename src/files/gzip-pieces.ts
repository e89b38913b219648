import type { ByteReader } from '../core/byte-reader.ts'

/** Compressed bytes are fed to zlib in pieces of this size. */
export const PIECE = 64 * 1024

/** The magic number and the method: deflate. With the flags they tell a header. */
const MAGIC = Buffer.from([0x1f, 0x8b, 8])
const TELLING = 4

const EMPTY = Buffer.alloc(0)

/** Whether a header of a member may begin so: magic, deflate, no reserved flag. */
export function mayBeHeader(bytes: Buffer): boolean {
  return bytes[0] === 0x1f && bytes[1] === 0x8b && bytes[2] === 8 && bytes[3]! < 0x20
}

/**
 * The compressed bytes of a source in pieces, which can be given back. A piece ends where the header
 * of a member may begin.
 */
export class Pieces {
  /** Of the next byte in the source. */
  offset: number
  #source: ByteReader
  #ahead: Buffer = EMPTY
  #atEnd = false
  /** Where the next header may begin; what lies at `offset` does not count. */
  #header = 0

  /** @param offset where `source` begins */
  constructor(source: ByteReader, offset = 0) {
    this.#source = source
    this.offset = offset
  }

  /** The next bytes, at most so many; none at the end. */
  async next(most = PIECE): Promise<Buffer> {
    await this.#fill()
    if (this.#header <= this.offset) this.#header = this.offset + this.#indexOfHeader()
    const piece = this.#ahead.subarray(0, Math.min(most, this.#header - this.offset))
    this.#ahead = this.#ahead.subarray(piece.length)
    this.offset += piece.length
    return piece
  }

  /** So many bytes, fewer at the end. */
  async exactly(count: number): Promise<Buffer> {
    let bytes = await this.next(count)
    while (bytes.length < count) {
      const more = await this.next(count - bytes.length)
      if (more.length === 0) break
      bytes = Buffer.concat([bytes, more])
    }
    return bytes
  }

  /** Takes the last bytes back. */
  giveBack(bytes: Buffer): void {
    this.#ahead = Buffer.concat([bytes, this.#ahead])
    this.offset -= bytes.length
  }

  /** Whether the header of a member may come next. */
  async areAtHeader(): Promise<boolean> {
    await this.#fill()
    return mayBeHeader(this.#ahead)
  }

  /** Reads until there are the bytes that tell a header. */
  async #fill(): Promise<void> {
    while (this.#ahead.length < TELLING && !this.#atEnd) {
      const bytes = Buffer.allocUnsafe(PIECE)
      const count = await this.#source.read(bytes, 0, PIECE)
      this.#atEnd = count === 0
      const read = bytes.subarray(0, count)
      this.#ahead = this.#ahead.length === 0 ? read : Buffer.concat([this.#ahead, read])
    }
  }

  /** Where a header may begin behind the next byte, its last bytes perhaps not read yet. */
  #indexOfHeader(): number {
    const ahead = this.#ahead
    for (let at = ahead.indexOf(MAGIC, 1); at >= 0; at = ahead.indexOf(MAGIC, at + 1)) {
      if (mayBeHeader(ahead.subarray(at))) return at
    }
    const tail = Math.max(1, ahead.length - TELLING + 1)
    const part = this.#atEnd ? -1 : ahead.indexOf(MAGIC[0]!, tail)
    return part < 0 ? ahead.length : part
  }
}
