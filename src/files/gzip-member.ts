import { crc32, createInflateRaw, type InflateRaw } from 'node:zlib'
import {
  Damage,
  endsEarly,
  isDamaged,
  type Member,
  type MemberKind,
  type MemberOptions,
} from './member.ts'
import { type HeaderForm, PIECE, type Pieces } from './pieces.ts'

/** The magic number and the method: deflate. With the flags they tell a header. */
const MAGIC = Buffer.from([0x1f, 0x8b, 8])

/** Magic, deflate, no reserved flag. */
const HEADER: HeaderForm = {
  magic: MAGIC,
  telling: 4,
  mayBegin: (bytes) =>
    bytes[0] === MAGIC[0] && bytes[1] === MAGIC[1] && bytes[2] === MAGIC[2] && bytes[3]! < 0x20,
}

/** gzip as RFC 1952 has it. */
export const GZIP: MemberKind = {
  name: 'gzip',
  header: HEADER,
  isPadded: true,
  trial: 64 * 1024,
  open: openMember,
}

/** Flags of a header: what follows its first ten bytes, in this order. */
const EXTRA = 4
const NAME = 8
const COMMENT = 16
const HEADER_CRC = 2

const EMPTY = Buffer.alloc(0)

async function openMember(pieces: Pieces, options: MemberOptions): Promise<GzipMember | undefined> {
  const head = await pieces.exactly(10)
  if (!HEADER.mayBegin(head)) {
    pieces.giveBack(head)
    return undefined
  }
  await skipRestOfHeader(pieces, head)
  return new GzipMember(pieces, options)
}

/** Decompresses one member of a gzip file. */
class GzipMember implements Member {
  /** Bytes given so far. */
  #given = 0
  #pieces: Pieces
  #options: MemberOptions
  /** Behind this offset single bytes are fed, so that zlib drops no output where it fails. */
  #steady: number
  /** Where the compressed data begins. */
  #body: number
  #inflate: InflateRaw = createInflateRaw({ chunkSize: PIECE })
  #piece: Buffer = EMPTY
  /** Where that piece begins, which zlib got last. */
  #before: number
  #crc = 0
  /** A piece is with zlib: the next one waits, or fast compression would pile pieces up. */
  #writing = false
  /** The end is told to zlib when all output has been taken: it drops what it holds when it fails. */
  #exhausted = false
  #ended = false
  #error: Error | undefined
  #wake: (() => void) | undefined

  constructor(pieces: Pieces, options: MemberOptions, steady = Number.POSITIVE_INFINITY) {
    this.#pieces = pieces
    this.#options = options
    this.#steady = steady
    this.#body = this.#before = pieces.offset
    const wake = (): void => this.#wake?.()
    this.#inflate.on('readable', wake)
    this.#inflate.on('error', (error) => {
      this.#error = error
      wake()
    })
    this.#inflate.on('end', () => {
      this.#ended = true
      wake()
    })
  }

  async next(): Promise<Buffer | undefined> {
    for (;;) {
      const chunk = this.#inflate.read() as Buffer | null
      if (chunk !== null) {
        this.#given += chunk.length
        this.#crc = crc32(chunk, this.#crc)
        return chunk
      }
      if (this.#error) throw this.#damageOf(this.#error)
      if (this.#ended) return this.#end()
      if (!this.#writing && !this.#exhausted && this.#unread().length === 0) await this.#feed()
      await new Promise<void>((resolve) => {
        this.#wake = resolve
      })
    }
  }

  async *rest(pieces: Pieces): AsyncGenerator<Buffer, number, void> {
    const head = await pieces.exactly(10)
    await skipRestOfHeader(pieces, head)
    const isMember = (): Promise<boolean> => Promise.resolve(false)
    const member = new GzipMember(pieces, { isMember }, this.#before)
    try {
      for (let known = 0; ; ) {
        const chunk = await member.next()
        if (chunk === undefined) return pieces.offset
        if (known + chunk.length > this.#given) {
          yield chunk.subarray(Math.max(0, this.#given - known))
        }
        known += chunk.length
      }
    } catch (error) {
      if (!(error instanceof Damage)) throw error
      return pieces.offset
    }
  }

  close(): void {
    this.#inflate.destroy()
  }

  async #feed(): Promise<void> {
    this.#before += this.#piece.length
    const most = Math.max(1, this.#steady - this.#before)
    this.#piece = (await this.#isCut()) ? EMPTY : await this.#pieces.next(most)
    const done = (): void => {
      this.#writing = false
      this.#wake?.()
    }
    this.#writing = true
    this.#exhausted = this.#piece.length === 0
    if (this.#exhausted) this.#inflate.end(done)
    else this.#inflate.write(this.#piece, done)
  }

  /** Whether the next member begins before this one has come to its end. */
  async #isCut(): Promise<boolean> {
    const { isMember } = this.#options
    if (!(await this.#pieces.areAtHeader())) return false
    // In a trial that is as good as the end: a killed writer may have been killed again.
    return isMember === undefined ? this.#given > 0 : isMember(this.#pieces.offset)
  }

  /** What zlib left of the piece: it has come to an end then. */
  #unread(): Buffer {
    return this.#piece.subarray(this.#body + this.#inflate.bytesWritten - this.#before)
  }

  async #end(): Promise<undefined> {
    this.#pieces.giveBack(this.#unread())
    this.#piece = EMPTY
    const trailer = await this.#pieces.exactly(8)
    if (trailer.length < 8) throw endsEarly()
    const isRight =
      trailer.readUInt32LE(0) === this.#crc && trailer.readUInt32LE(4) === this.#given % 2 ** 32
    if (!isRight) throw isDamaged()
  }

  #damageOf(error: Error): Damage {
    const isCut = (error as { code?: string }).code === 'Z_BUF_ERROR'
    return isCut ? endsEarly(true) : isDamaged(this.#before)
  }
}

/** Passes over the parts of a header that its flags announce. */
async function skipRestOfHeader(pieces: Pieces, head: Buffer): Promise<void> {
  const flags = head.length < 10 ? 0 : head[3]!
  let left = head.length < 10 ? 1 : 0
  if (flags & EXTRA) {
    const length = await pieces.exactly(2)
    left = length.length < 2 ? 1 : length.readUInt16LE(0)
    left -= (await pieces.exactly(left)).length
  }
  for (const flag of [NAME, COMMENT]) if (flags & flag) await skipText(pieces)
  if (flags & HEADER_CRC) left += 2 - (await pieces.exactly(2)).length
  if (left > 0) throw endsEarly()
}

async function skipText(pieces: Pieces): Promise<void> {
  for (;;) {
    const piece = await pieces.next()
    if (piece.length === 0) throw endsEarly()
    const end = piece.indexOf(0)
    if (end < 0) continue
    return pieces.giveBack(piece.subarray(end + 1))
  }
}
