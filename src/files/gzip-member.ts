import { crc32, createInflateRaw, type InflateRaw } from 'node:zlib'
import { mayBeHeader, PIECE, type Pieces } from './gzip-pieces.ts'

/** Flags of a header: what follows its first ten bytes, in this order. */
const EXTRA = 4
const NAME = 8
const COMMENT = 16
const HEADER_CRC = 2

const EMPTY = Buffer.alloc(0)

/** What is wrong with a member, as messages say it. */
export class GzipDamage extends Error {
  readonly isCut: boolean
  /** Its data was read to the end: what is wrong is the header or the checksum. */
  readonly complete: boolean

  constructor(isCut: boolean, complete = false) {
    super(isCut ? 'ends early' : 'is damaged')
    this.isCut = isCut
    this.complete = complete
  }
}

/** How a member is read. */
export interface MemberOptions {
  /** Behind this offset single bytes are fed, so that zlib drops no output where it fails. */
  steady?: number
  /** Whether another member begins there, so that this one is cut. */
  isMember?: (offset: number) => Promise<boolean>
}

/** Decompresses one member of a gzip file (RFC 1952). */
export class GzipMember {
  /** Where the piece begins that zlib got last. */
  before: number
  /** Bytes given so far. */
  given = 0
  #pieces: Pieces
  #options: MemberOptions
  /** Where the compressed data begins. */
  #body: number
  #inflate: InflateRaw = createInflateRaw({ chunkSize: PIECE })
  #piece: Buffer = EMPTY
  #crc = 0
  /** A piece is with zlib: the next one waits, or fast compression would pile pieces up. */
  #writing = false
  /** The end is told to zlib when all output has been taken: it drops what it holds when it fails. */
  #exhausted = false
  #ended = false
  #error: Error | undefined
  #wake: (() => void) | undefined

  /**
   * Begins with the member whose header comes next.
   *
   * @returns undefined where none does; the bytes are given back then
   * @throws GzipDamage where the file ends inside the header
   */
  static async open(pieces: Pieces, options: MemberOptions = {}): Promise<GzipMember | undefined> {
    const head = await pieces.exactly(10)
    if (!mayBeHeader(head)) {
      pieces.giveBack(head)
      return undefined
    }
    await skipRestOfHeader(pieces, head)
    return new GzipMember(pieces, options)
  }

  private constructor(pieces: Pieces, options: MemberOptions) {
    this.#pieces = pieces
    this.#options = options
    this.#body = this.before = pieces.offset
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

  /**
   * The next bytes of what the member holds; undefined at its end.
   *
   * @throws GzipDamage where it is cut or broken
   */
  async next(): Promise<Buffer | undefined> {
    for (;;) {
      const chunk = this.#inflate.read() as Buffer | null
      if (chunk !== null) {
        this.given += chunk.length
        this.#crc = crc32(chunk, this.#crc)
        return chunk
      }
      if (this.#error) throw damageOf(this.#error)
      if (this.#ended) return this.#end()
      if (!this.#writing && !this.#exhausted && this.#unread().length === 0) await this.#feed()
      await new Promise<void>((resolve) => {
        this.#wake = resolve
      })
    }
  }

  /** Ends with a member that is not read to its end. */
  close(): void {
    this.#inflate.destroy()
  }

  async #feed(): Promise<void> {
    this.before += this.#piece.length
    this.#piece = (await this.#isCut()) ? EMPTY : await this.#pieces.next(this.#most())
    const done = (): void => {
      this.#writing = false
      this.#wake?.()
    }
    this.#writing = true
    this.#exhausted = this.#piece.length === 0
    if (this.#exhausted) this.#inflate.end(done)
    else this.#inflate.write(this.#piece, done)
  }

  #most(): number {
    const { steady = Number.POSITIVE_INFINITY } = this.#options
    return Math.max(1, steady - this.before)
  }

  /** Whether the next member begins before this one has come to its end. */
  async #isCut(): Promise<boolean> {
    const { isMember } = this.#options
    if (isMember === undefined || !(await this.#pieces.areAtHeader())) return false
    return isMember(this.#pieces.offset)
  }

  /** What zlib left of the piece: it has come to an end then. */
  #unread(): Buffer {
    return this.#piece.subarray(this.#body + this.#inflate.bytesWritten - this.before)
  }

  async #end(): Promise<undefined> {
    this.#pieces.giveBack(this.#unread())
    this.#piece = EMPTY
    const trailer = await this.#pieces.exactly(8)
    if (trailer.length < 8) throw new GzipDamage(true, true)
    const isRight =
      trailer.readUInt32LE(0) === this.#crc && trailer.readUInt32LE(4) === this.given % 2 ** 32
    if (!isRight) throw new GzipDamage(false, true)
  }
}

function damageOf(error: Error): GzipDamage {
  const { code } = error as { code?: string }
  return new GzipDamage(code === 'Z_BUF_ERROR')
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
  if (left > 0) throw new GzipDamage(true, true)
}

async function skipText(pieces: Pieces): Promise<void> {
  for (;;) {
    const piece = await pieces.next()
    if (piece.length === 0) throw new GzipDamage(true, true)
    const end = piece.indexOf(0)
    if (end < 0) continue
    return pieces.giveBack(piece.subarray(end + 1))
  }
}
