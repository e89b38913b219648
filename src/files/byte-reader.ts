import { close as closeFd, read as readFd } from 'node:fs'
import type { Readable } from 'node:stream'
import type { ByteReader } from '../core/byte-reader.ts'
import { errnoOf } from '../core/tool-error.ts'

/**
 * Reads a file descriptor from where it stands (or from `position`), on a thread of libuv's pool, so
 * that the next block is read while this one is scanned.
 */
export class FdReader implements ByteReader {
  fd: number
  bytesRead = 0
  #position: number | null
  #left: number
  #reopen: (() => Promise<number | undefined>) | undefined

  /**
   * @param position where to begin; null follows the descriptor's own offset, as standard input must
   * @param limit bytes to read at most: what another process appends meanwhile is not seen
   * @param reopen gives another descriptor of the same file, where the handle of this one is stale
   */
  constructor(
    fd: number,
    position: number | null,
    limit = Number.POSITIVE_INFINITY,
    reopen?: () => Promise<number | undefined>,
  ) {
    this.fd = fd
    this.#position = position
    this.#left = limit
    this.#reopen = reopen
  }

  read(into: Buffer, offset: number, length: number): Promise<number> {
    const wanted = Math.min(length, this.#left)
    if (wanted === 0) return Promise.resolve(0)
    const reopen = this.#reopen
    if (reopen === undefined) return this.#read(into, offset, wanted)
    return this.#read(into, offset, wanted).catch(async (error: unknown) => {
      if (errnoOf(error) !== 'ESTALE') throw error
      const fd = await reopen()
      if (fd === undefined) throw error
      closeFd(this.fd, () => {})
      this.fd = fd
      return this.#read(into, offset, wanted)
    })
  }

  #read(into: Buffer, offset: number, wanted: number): Promise<number> {
    return new Promise((resolve, reject) => {
      readFd(this.fd, into, offset, wanted, this.#position, (error, count) => {
        if (error) return reject(error)
        this.#left -= count
        this.bytesRead += count
        if (this.#position !== null) this.#position += count
        resolve(count)
      })
    })
  }
}

/** Reads a stream: a pipe, a socket, or what a decompressor gives. */
export class StreamReader implements ByteReader {
  #stream: Readable
  #chunk: Buffer | null = null
  #at = 0
  #ended = false
  #error: Error | undefined
  #wake: (() => void) | undefined

  constructor(stream: Readable) {
    this.#stream = stream
    const wake = (): void => this.#wake?.()
    stream.on('readable', wake)
    stream.on('end', () => {
      this.#ended = true
      wake()
    })
    stream.on('close', () => {
      this.#ended = true
      wake()
    })
    stream.on('error', (error: Error) => {
      this.#error = error
      wake()
    })
  }

  async read(into: Buffer, offset: number, length: number): Promise<number> {
    while (this.#chunk === null) {
      this.#chunk = this.#stream.read() as Buffer | null
      this.#at = 0
      if (this.#chunk !== null) break
      if (this.#error) throw this.#error
      if (this.#ended) return 0
      await new Promise<void>((resolve) => {
        this.#wake = resolve
      })
    }
    const count = this.#chunk.copy(into, offset, this.#at, this.#at + length)
    this.#at += count
    if (this.#at === this.#chunk.length) this.#chunk = null
    return count
  }
}

/** Gives the bytes of `head` first and then those of `rest`. */
export class PrefixedReader implements ByteReader {
  #head: Buffer
  #rest: ByteReader

  constructor(head: Buffer, rest: ByteReader) {
    this.#head = head
    this.#rest = rest
  }

  read(into: Buffer, offset: number, length: number): Promise<number> {
    if (this.#head.length === 0) return this.#rest.read(into, offset, length)
    const count = this.#head.copy(into, offset, 0, length)
    this.#head = this.#head.subarray(count)
    return Promise.resolve(count)
  }
}

/** A reader of what can be read once more. */
export interface RereadableSource extends ByteReader {
  /** Reads from an offset on that was read before; undefined where that is no longer possible. */
  again(offset: number): ByteReader | undefined
  /** Reads itself from there on; false where that is no longer possible. */
  goOnFrom(offset: number): boolean
}

/** Reads a file, which can be read again from anywhere. */
export class FileReader implements RereadableSource {
  #reader: ByteReader
  #from: (offset: number) => ByteReader

  /**
   * @param reader from the begin
   * @param from gives a reader from an offset on
   */
  constructor(reader: ByteReader, from: (offset: number) => ByteReader) {
    this.#reader = reader
    this.#from = from
  }

  read(into: Buffer, offset: number, length: number): Promise<number> {
    return this.#reader.read(into, offset, length)
  }

  again(offset: number): ByteReader {
    return this.#from(offset)
  }

  goOnFrom(offset: number): boolean {
    this.#reader = this.#from(offset)
    return true
  }
}

/** Bytes of a pipe that are kept to be read again: compressed data sets of some ten thousand records. */
const KEPT = 16 * 1024 * 1024

/** Remembers what a pipe gave, up to {@link KEPT} bytes. */
export class KeptReader implements RereadableSource {
  #source: ByteReader
  #kept: { bytes: Buffer; start: number }[] = []
  #size = 0
  #at = 0

  constructor(source: ByteReader) {
    this.#source = source
  }

  async read(into: Buffer, offset: number, length: number): Promise<number> {
    const count = await this.#readAt(this.#at, into, offset, length)
    this.#at += count
    return count
  }

  again(from: number): ByteReader | undefined {
    if (this.#size > KEPT) return undefined
    let at = from
    return {
      read: async (into, offset, length) => {
        const count = await this.#readAt(at, into, offset, length)
        at += count
        return count
      },
    }
  }

  goOnFrom(offset: number): boolean {
    if (this.#size > KEPT) return false
    this.#at = offset
    return true
  }

  async #readAt(at: number, into: Buffer, offset: number, length: number): Promise<number> {
    const kept = at < this.#size && this.#kept.findLast(({ start }) => start <= at)
    if (kept) return kept.bytes.copy(into, offset, at - kept.start, at - kept.start + length)
    const count = await this.#source.read(into, offset, length)
    if (this.#size > KEPT && at === this.#at) this.#kept = []
    else if (count > 0) {
      const bytes = Buffer.from(into.subarray(offset, offset + count))
      this.#kept.push({ bytes, start: this.#size })
    }
    this.#size += count
    return count
  }
}
