import { close, fstat, fsync, ftruncate, open, read, unlink } from 'node:fs'
import { promisify } from 'node:util'
import { type RemovedPiece, removedPieceJson } from '../core/removed-piece.ts'
import { errnoOf, ioError } from '../core/tool-error.ts'
import { FdSink, writeAll } from './fd-sink.ts'

const openFd = promisify(open)
const closeFd = promisify(close)
const statFd = promisify(fstat)
const syncFd = promisify(fsync)
const truncateFd = promisify(ftruncate)
const readFd = promisify(read)
const unlinkPath = promisify(unlink)

/** Bytes that are gathered before they are written. */
const BATCH = 1024 * 1024

const NEWLINE = Buffer.from('\n')

/**
 * A file that removed pieces are appended to, a line each. It comes into being with the first of
 * them; what was appended since a mark can be taken back while this process lives.
 */
export class RemovedFile {
  readonly path: string
  /** Pieces written so far. */
  count = 0
  #fd: number | undefined
  #sink: FdSink | undefined
  #mode: number
  #created = false
  /** Length of a regular file at the mark; undefined for pipes and devices. */
  #marked: number | undefined
  #markedCount = 0

  /** @param mode the mode it gets where it is new: as private as the file the pieces come from */
  constructor(path: string, mode = 0o666) {
    this.path = path
    this.#mode = mode & 0o666
  }

  add(piece: RemovedPiece): Promise<void> {
    return this.addAll([piece])
  }

  /** Appends pieces; all are written when it returns. */
  addAll(pieces: readonly RemovedPiece[]): Promise<void> {
    return this.addLines(pieces.map(removedPieceJson))
  }

  /**
   * Appends lines, each given in parts, many of them with one write.
   *
   * @throws ToolError where they cannot be written
   */
  async addLines(lines: readonly Iterable<Uint8Array>[]): Promise<void> {
    if (lines.length === 0) return
    this.#sink ??= new FdSink(await this.#open(), this.path)
    let waiting = 0
    for (const parts of lines) {
      for (const part of parts) {
        this.#sink.add(part, 0, part.length)
        waiting += part.length
        if (waiting < BATCH) continue
        await this.#sink.flush()
        waiting = 0
      }
    }
    await this.#sink.flush()
    this.count += lines.length
  }

  /** Notes what is there now as what `rollback` goes back to. */
  async mark(): Promise<void> {
    this.#markedCount = this.count
    if (this.#fd === undefined) return
    this.#created = false
    const stats = await statFd(this.#fd)
    this.#marked = stats.isFile() ? stats.size : undefined
  }

  /** Takes back what was appended since the mark, or since the file was opened. */
  async rollback(): Promise<void> {
    if (this.#fd === undefined || this.#marked === undefined) return
    this.count = this.#markedCount
    await truncateFd(this.#fd, this.#marked)
    if (!this.#created) return
    await unlinkPath(this.path)
    await this.close()
    this.#created = false
  }

  /** Brings what was appended to the disk. */
  async sync(): Promise<void> {
    if (this.#fd !== undefined && this.#marked !== undefined) await syncFd(this.#fd)
  }

  async close(): Promise<void> {
    if (this.#fd !== undefined) await closeFd(this.#fd)
    this.#fd = undefined
    this.#sink = undefined
  }

  async #open(): Promise<number> {
    try {
      const fd = await this.#openForAppending()
      this.#fd = fd
      const stats = await statFd(fd)
      this.#marked = stats.isFile() ? stats.size : undefined
      if (stats.isFile() && stats.size > 0) await endLastLine(fd, stats.size, this.path)
      return fd
    } catch (error) {
      throw ioError(error, this.path, 'write')
    }
  }

  async #openForAppending(): Promise<number> {
    try {
      const fd = await openFd(this.path, 'ax+', this.#mode)
      this.#created = true
      return fd
    } catch (error) {
      if (errnoOf(error) !== 'EEXIST') throw error
      // A device or a pipe may be there for writing only.
      return await openFd(this.path, 'a+').catch(() => openFd(this.path, 'a'))
    }
  }
}

/** A writer that was killed may have left half a line: the next one begins on its own. */
async function endLastLine(fd: number, size: number, path: string): Promise<void> {
  const last = Buffer.alloc(1)
  const { bytesRead } = await readFd(fd, last, 0, 1, size - 1).catch(() => ({ bytesRead: 0 }))
  if (bytesRead === 1 && last[0] !== 0x0a) await writeAll(fd, NEWLINE, path)
}
