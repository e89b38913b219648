import { close, open } from 'node:fs'
import { promisify } from 'node:util'
import { type RemovedPiece, removedPieceJson } from '../core/removed-piece.ts'
import { ioError } from '../core/tool-error.ts'
import { writeAll } from './fd-sink.ts'

const openFd = promisify(open)
const closeFd = promisify(close)

/** A file that removed pieces are appended to. It comes into being with the first of them. */
export class RemovedFile {
  readonly path: string
  /** Pieces written so far. */
  count = 0
  #fd: number | undefined

  constructor(path: string) {
    this.path = path
  }

  async add(piece: RemovedPiece): Promise<void> {
    this.#fd ??= await openFd(this.path, 'a').catch((error: unknown) => {
      throw ioError(error, this.path, 'write')
    })
    for (const part of removedPieceJson(piece)) await writeAll(this.#fd, part, this.path)
    this.count++
  }

  async close(): Promise<void> {
    if (this.#fd !== undefined) await closeFd(this.#fd)
    this.#fd = undefined
  }
}
