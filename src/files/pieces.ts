import type { ByteReader } from '../core/byte-reader.ts'

/** Compressed bytes are read in pieces of this size. */
export const PIECE = 64 * 1024

/** Where less than this is free behind the bytes read, others are read into fresh memory. */
const ROOM = PIECE / 4

/** How the headers of a format begin. */
export interface HeaderForm {
  magic: Buffer
  /** So many bytes tell whether a header may begin. */
  telling: number
  /** Whether a header may begin so; `bytes` may be fewer than `telling` at the end. */
  mayBegin(bytes: Buffer): boolean
}

/**
 * The compressed bytes of a source in pieces, which can be given back. A piece ends where a header may
 * begin.
 */
export class Pieces {
  /** Of the next byte in the source. */
  offset: number
  #source: ByteReader
  #form: HeaderForm
  #buffer: Buffer = Buffer.alloc(0)
  #from = 0
  #to = 0
  #atEnd = false
  /** Where the next header may begin behind `#searched`, which itself does not count. */
  #header = 0
  #searched = 0

  /** @param offset where `source` begins */
  constructor(source: ByteReader, form: HeaderForm, offset = 0) {
    this.#source = source
    this.#form = form
    this.offset = offset
  }

  /** The next bytes, at most so many; none at the end. */
  async next(most = PIECE): Promise<Buffer> {
    const ahead = await this.ahead()
    if (this.#header <= this.offset) {
      this.#searched = this.offset
      this.#header = this.offset + this.#indexOfHeader(ahead)
    }
    return this.#take(Math.min(most, this.#header - this.offset))
  }

  /** So many bytes, fewer at the end; a header may be among them. */
  async exactly(count: number): Promise<Buffer> {
    await this.ahead()
    const first = this.#take(count)
    if (first.length === count || first.length === 0) return first
    const bytes = Buffer.allocUnsafe(count)
    let filled = first.copy(bytes)
    while (filled < count && (await this.ahead()).length > 0) {
      filled += this.#take(count - filled).copy(bytes, filled)
    }
    return bytes.subarray(0, filled)
  }

  /** Passes over so many bytes; returns how many there were. */
  async skip(count: number): Promise<number> {
    let left = count
    while (left > 0 && (await this.ahead()).length > 0) left -= this.#take(left).length
    return count - left
  }

  /** Takes the last bytes back. */
  giveBack(bytes: Buffer): void {
    const before = this.#buffer.subarray(Math.max(0, this.#from - bytes.length), this.#from)
    const isOwn = bytes.buffer === before.buffer && bytes.byteOffset === before.byteOffset
    if (isOwn && bytes.length === before.length) this.#from -= bytes.length
    else this.#keep(Buffer.concat([bytes, this.#ahead()]))
    this.offset -= bytes.length
    if (this.offset < this.#searched) this.#header = this.offset
  }

  /** What comes next without taking it: as many bytes as tell a header, fewer at the end. */
  async ahead(): Promise<Buffer> {
    while (this.#to - this.#from < this.#form.telling && !this.#atEnd) await this.#fill()
    return this.#ahead()
  }

  /** Whether a header may come next. */
  async areAtHeader(): Promise<boolean> {
    return this.#form.mayBegin(await this.ahead())
  }

  #take(most: number): Buffer {
    const piece = this.#ahead().subarray(0, most)
    this.#from += piece.length
    this.offset += piece.length
    return piece
  }

  #ahead(): Buffer {
    return this.#buffer.subarray(this.#from, this.#to)
  }

  #keep(ahead: Buffer, buffer = ahead): void {
    this.#buffer = buffer
    this.#from = 0
    this.#to = ahead.length
  }

  async #fill(): Promise<void> {
    if (this.#buffer.length - this.#to < ROOM) {
      const fresh = Buffer.allocUnsafe(PIECE)
      this.#ahead().copy(fresh)
      this.#keep(this.#ahead(), fresh)
    }
    const count = await this.#source.read(this.#buffer, this.#to, this.#buffer.length - this.#to)
    this.#atEnd = count === 0
    this.#to += count
  }

  /** Where a header may begin behind the next byte, its last bytes perhaps not read yet. */
  #indexOfHeader(ahead: Buffer): number {
    const { magic, telling } = this.#form
    for (let at = ahead.indexOf(magic, 1); at >= 0; at = ahead.indexOf(magic, at + 1)) {
      if (this.#form.mayBegin(ahead.subarray(at))) return at
    }
    const tail = Math.max(1, ahead.length - telling + 1)
    const part = this.#atEnd ? -1 : ahead.indexOf(magic[0]!, tail)
    return part < 0 ? ahead.length : part
  }
}
