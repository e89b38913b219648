import { write as writeFd } from 'node:fs'
import { ClosedPipe, errnoOf, ioError } from '../core/tool-error.ts'

/** How long a full non-blocking pipe is left alone before the next try, in milliseconds. */
const EAGAIN_PAUSE = 5

/** Pieces below this length are copied together; a write costs about as much as copying 16 KiB. */
const SMALL = 16 * 1024
const GATHER_SIZE = 256 * 1024

/**
 * Writes byte ranges to a file descriptor, short ones gathered so that many cost one write. The
 * writes run on libuv's pool: a slow reader of a pipe does not stop the event loop.
 */
export class FdSink {
  #fd: number
  #name: string
  #pieces: Uint8Array[] = []
  #gather: Buffer = Buffer.allocUnsafeSlow(GATHER_SIZE)
  #spare: Buffer = Buffer.allocUnsafeSlow(GATHER_SIZE)
  #writing: Promise<void> | undefined
  #from = 0
  #to = 0

  /** @param name the file's name for error messages */
  constructor(fd: number, name: string) {
    this.#fd = fd
    this.#name = name
  }

  /** Takes the bytes from `start` to `end`, which must stay as they are until the next `flush`. */
  add(bytes: Uint8Array, start: number, end: number): void {
    if (end - start >= SMALL) {
      this.#seal()
      this.#pieces.push(bytes.subarray(start, end))
      return
    }
    if (this.#to + end - start > this.#gather.length) {
      this.#seal()
      this.#gather = Buffer.allocUnsafeSlow(GATHER_SIZE)
      this.#from = this.#to = 0
    }
    this.#gather.set(bytes.subarray(start, end), this.#to)
    this.#to += end - start
  }

  /**
   * Writes what was added.
   *
   * @throws ClosedPipe where the reader of a pipe has gone, ToolError on other write errors
   */
  async flush(): Promise<void> {
    await this.flushBehind()
    await this.#written()
  }

  /**
   * Begins to write what was added, once what the call before began to write is written; the added
   * bytes must stay as they are until the next call has returned.
   *
   * @throws what the write before met, as `flush`
   */
  async flushBehind(): Promise<void> {
    this.#seal()
    const pieces = this.#pieces
    this.#pieces = []
    this.#from = this.#to = 0
    await this.#written()
    const free = this.#spare
    this.#spare = this.#gather
    this.#gather = free
    if (pieces.length === 0) return
    this.#writing = this.#write(pieces)
    // Its error is that of the next call.
    this.#writing.catch(() => {})
  }

  /** Resolves when nothing is being written; what was added since is left, and errors are the next call's. */
  async idle(): Promise<void> {
    await this.#writing?.catch(() => {})
  }

  async #write(pieces: readonly Uint8Array[]): Promise<void> {
    for (const piece of pieces) await writeAll(this.#fd, piece, this.#name)
  }

  async #written(): Promise<void> {
    const writing = this.#writing
    this.#writing = undefined
    await writing
  }

  #seal(): void {
    if (this.#to > this.#from) this.#pieces.push(this.#gather.subarray(this.#from, this.#to))
    this.#from = this.#to
  }
}

/** Writes all bytes, however many calls it takes. */
export async function writeAll(fd: number, bytes: Uint8Array, name: string): Promise<void> {
  let at = 0
  while (at < bytes.length) {
    try {
      at += await writeSome(fd, bytes, at)
    } catch (error) {
      const code = errnoOf(error)
      if (code === 'EPIPE') throw new ClosedPipe()
      if (code !== 'EAGAIN') throw ioError(error, name, 'write')
      await new Promise((resolve) => setTimeout(resolve, EAGAIN_PAUSE))
    }
  }
}

function writeSome(fd: number, bytes: Uint8Array, at: number): Promise<number> {
  return new Promise((resolve, reject) => {
    writeFd(fd, bytes, at, bytes.length - at, null, (error, count) => {
      if (error) reject(error)
      else resolve(count)
    })
  })
}
