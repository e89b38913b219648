import { createGunzip, type Gunzip } from 'node:zlib'
import type { ByteReader } from '../core/byte-reader.ts'
import { ToolError } from '../core/tool-error.ts'
import type { RereadableSource } from './byte-reader.ts'

/** Compressed bytes are fed to zlib in pieces of this size. */
const PIECE = 64 * 1024

/**
 * Decompresses gzip, also several members one after the other. Everything that can be decompressed
 * is given before an error is thrown. zlib's streams drop the output of the piece they fail at: the
 * source is then read again from its start, and that piece is fed byte by byte (about a second).
 */
export class GzipReader implements ByteReader {
  #source: RereadableSource
  #name: string
  #inflation: Inflation
  #again = false

  /**
   * @param name the file's name, for the error
   * @throws ToolError `gzip-truncated` from `read` where the stream is cut, broken or followed by
   *   bytes that are no gzip
   */
  constructor(source: RereadableSource, name: string) {
    this.#source = source
    this.#name = name
    this.#inflation = new Inflation(source, Number.POSITIVE_INFINITY)
  }

  async read(into: Buffer, offset: number, length: number): Promise<number> {
    try {
      return await this.#inflation.read(into, offset, length)
    } catch (error) {
      if (!isDamage(error)) throw error
      const source = this.#again || error.code === 'Z_BUF_ERROR' ? undefined : this.#source.again()
      if (source === undefined) throw this.#broken(error)
      this.#again = true
      await this.#replay(source)
      return this.read(into, offset, length)
    }
  }

  /** Brings a second inflation to where the first one failed. */
  async #replay(source: ByteReader): Promise<void> {
    const { before, given } = this.#inflation
    this.#inflation = new Inflation(source, before)
    const scratch = Buffer.allocUnsafe(PIECE)
    while (this.#inflation.given < given) {
      const left = given - this.#inflation.given
      if ((await this.#inflation.read(scratch, 0, Math.min(left, PIECE))) === 0) return
    }
  }

  #broken(error: ZlibError): ToolError {
    const what = WHAT[error.code === 'Z_BUF_ERROR' ? error.code : error.message]
    return new ToolError('gzip-truncated', what ?? 'the gzip stream is damaged', {
      exitCode: 1,
      place: { file: this.#name },
    })
  }
}

type ZlibError = Error & { code: string }

const AFTER_THE_END = 'incorrect header check'

const WHAT: Record<string, string> = {
  Z_BUF_ERROR: 'the gzip stream ends early',
  [AFTER_THE_END]: 'bytes that are no gzip follow the end of the gzip stream',
}

function isDamage(error: unknown): error is ZlibError {
  return error instanceof Error && String((error as { code?: unknown }).code).startsWith('Z_')
}

/** One pass of zlib over a source: pieces up to `steady` compressed bytes, single bytes behind. */
class Inflation implements ByteReader {
  /** Compressed bytes that were fed before the piece that zlib has now. */
  before = 0
  /** Bytes given so far. */
  given = 0
  #source: ByteReader
  #steady: number
  #gunzip: Gunzip = createGunzip()
  #piece: Buffer = Buffer.alloc(0)
  #chunk: Buffer | null = null
  #at = 0
  /** A piece is with zlib: the next one waits, or fast compression would pile pieces up. */
  #writing = false
  /** The end is told to zlib when all output has been taken: it drops what it holds when it fails. */
  #exhausted = false
  #ended = false
  #error: Error | undefined
  #wake: (() => void) | undefined

  constructor(source: ByteReader, steady: number) {
    this.#source = source
    this.#steady = steady
    this.#gunzip.on('readable', () => this.#wake?.())
    this.#gunzip.on('error', (error) => {
      this.#error = error
      this.#wake?.()
    })
    this.#gunzip.on('end', () => {
      this.#ended = true
      this.#wake?.()
    })
  }

  async read(into: Buffer, offset: number, length: number): Promise<number> {
    while (this.#chunk === null) {
      this.#chunk = this.#gunzip.read() as Buffer | null
      this.#at = 0
      if (this.#chunk !== null) break
      if (this.#error) throw this.#error
      if (this.#ended) return this.#padding()
      if (!this.#writing && !this.#exhausted && this.#unread().length === 0) await this.#feed()
      await new Promise<void>((resolve) => {
        this.#wake = resolve
      })
    }
    const count = this.#chunk.copy(into, offset, this.#at, this.#at + length)
    this.#at += count
    this.given += count
    if (this.#at === this.#chunk.length) this.#chunk = null
    return count
  }

  async #feed(): Promise<void> {
    this.before += this.#piece.length
    this.#piece = await this.#next()
    const done = (): void => {
      this.#writing = false
      this.#wake?.()
    }
    this.#writing = true
    if (this.#piece.length > 0) {
      this.#gunzip.write(this.#piece, done)
    } else {
      this.#exhausted = true
      this.#gunzip.end(done)
    }
  }

  async #next(): Promise<Buffer> {
    const length = Math.max(1, Math.min(PIECE, this.#steady - this.before))
    const piece = Buffer.allocUnsafe(length)
    return piece.subarray(0, await this.#source.read(piece, 0, length))
  }

  /** What zlib left of the piece: it has come to an end then. */
  #unread(): Buffer {
    return this.#piece.subarray(this.#gunzip.bytesWritten - this.before)
  }

  /** zlib stops at a NUL behind a member, as tapes are padded: only NULs may follow. */
  async #padding(): Promise<number> {
    let rest = this.#unread()
    do {
      if (rest.some((byte) => byte !== 0)) {
        throw Object.assign(new Error(AFTER_THE_END), { code: 'Z_DATA_ERROR' })
      }
      rest = this.#exhausted ? Buffer.alloc(0) : await this.#next()
    } while (rest.length > 0)
    return 0
  }
}
