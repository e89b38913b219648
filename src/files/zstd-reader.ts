import type { Decompress } from 'fzstd'
import type { ByteReader } from '../core/byte-reader.ts'
import { ToolError } from '../core/tool-error.ts'

/**
 * Compressed bytes are fed in pieces of this size. A piece gives all its output at once, and zstd
 * can make 2 GB of 64 KiB: what gives much makes the next pieces smaller.
 */
const LARGEST_PIECE = 64 * 1024
const SMALLEST_PIECE = 256
const MUCH = 4 * 1024 * 1024

/** What fzstd calls the end of input inside a frame. */
const UNEXPECTED_END = 5

/**
 * Decompresses zstd, also several frames one after the other, in plain JavaScript (fzstd; Node's own
 * zlib has zstd only from 22.15 on). Every block that is whole is given before an error is thrown.
 */
export class ZstdReader implements ByteReader {
  #source: ByteReader
  #name: string
  #decompress: Decompress
  #output: Uint8Array[] = []
  #at = 0
  #pieceSize = 4096
  #made = 0
  #ended = false
  #error: Error | undefined

  /**
   * Loads the decompressor, which no other run needs.
   *
   * @param name the file's name, for the error
   */
  static async create(source: ByteReader, name: string): Promise<ZstdReader> {
    const fzstd = await import('fzstd')
    return new ZstdReader(source, name, new fzstd.Decompress())
  }

  constructor(source: ByteReader, name: string, decompress: Decompress) {
    this.#source = source
    this.#name = name
    this.#decompress = decompress
    decompress.ondata = (data) => {
      if (data.length === 0) return
      this.#output.push(data)
      this.#made += data.length
    }
  }

  /** @throws ToolError `zstd-truncated` where the stream is cut or broken */
  async read(into: Buffer, offset: number, length: number): Promise<number> {
    while (this.#output.length === 0) {
      if (this.#error !== undefined) throw this.#broken(this.#error)
      if (this.#ended) return 0
      await this.#feed()
    }
    const [chunk] = this.#output
    const count = Math.min(length, chunk!.length - this.#at)
    into.set(chunk!.subarray(this.#at, this.#at + count), offset)
    this.#at += count
    if (this.#at === chunk!.length) {
      this.#output.shift()
      this.#at = 0
    }
    return count
  }

  async #feed(): Promise<void> {
    const piece = Buffer.allocUnsafe(this.#pieceSize)
    const count = await this.#source.read(piece, 0, piece.length)
    this.#ended = count === 0
    this.#made = 0
    try {
      this.#decompress.push(piece.subarray(0, count), this.#ended)
    } catch (error) {
      this.#error = error as Error
    }
    if (this.#made > MUCH) this.#pieceSize = Math.max(SMALLEST_PIECE, this.#pieceSize / 8)
    else this.#pieceSize = Math.min(LARGEST_PIECE, this.#pieceSize * 2)
  }

  #broken(error: Error): ToolError {
    const cut = (error as { code?: number }).code === UNEXPECTED_END
    const what = cut ? 'the zstd stream ends early' : 'the zstd stream is damaged'
    return new ToolError('zstd-truncated', what, { exitCode: 1, place: { file: this.#name } })
  }
}
