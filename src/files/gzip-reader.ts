import { createGunzip, type Gunzip } from 'node:zlib'
import type { ByteReader } from '../core/byte-reader.ts'
import { ToolError } from '../core/tool-error.ts'

/** Compressed bytes are fed to zlib in pieces of this size. */
const PIECE = 64 * 1024

/**
 * Decompresses gzip, also several members one after the other. Everything that can be decompressed
 * is given before an error is thrown: input is fed piece by piece, and the end of the input is told
 * to zlib only when all output has been taken, since a stream drops what it holds when it fails.
 */
export class GzipReader implements ByteReader {
  #source: ByteReader
  #name: string
  #gunzip: Gunzip = createGunzip()
  #chunk: Buffer | null = null
  #at = 0
  /** A piece is with zlib: the next one waits, or fast compression would pile pieces up. */
  #writing = false
  #exhausted = false
  #ended = false
  #error: Error | undefined
  #wake: (() => void) | undefined

  /**
   * @param name the file's name, for the error
   * @throws ToolError `gzip-truncated` from `read` where the stream is cut or broken
   */
  constructor(source: ByteReader, name: string) {
    this.#source = source
    this.#name = name
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
      if (this.#error) throw this.#broken(this.#error)
      if (this.#ended) return 0
      if (!this.#writing && !this.#exhausted) await this.#feed()
      await new Promise<void>((resolve) => {
        this.#wake = resolve
      })
    }
    const count = this.#chunk.copy(into, offset, this.#at, this.#at + length)
    this.#at += count
    if (this.#at === this.#chunk.length) this.#chunk = null
    return count
  }

  async #feed(): Promise<void> {
    const piece = Buffer.allocUnsafe(PIECE)
    const count = await this.#source.read(piece, 0, PIECE)
    const done = (): void => {
      this.#writing = false
      this.#wake?.()
    }
    this.#writing = true
    if (count > 0) {
      this.#gunzip.write(piece.subarray(0, count), done)
    } else {
      this.#exhausted = true
      this.#gunzip.end(done)
    }
  }

  #broken(error: Error): ToolError {
    const cut = (error as { code?: string }).code === 'Z_BUF_ERROR'
    const what = cut ? 'the gzip stream ends early' : 'the gzip stream is damaged'
    return new ToolError('gzip-truncated', what, { exitCode: 1, place: { file: this.#name } })
  }
}
