import {
  closeSync,
  fsyncSync,
  openSync,
  realpathSync,
  renameSync,
  statSync,
  unlinkSync,
} from 'node:fs'
import { ioError } from '../core/tool-error.ts'
import { openPipe } from './pipe-output.ts'

/**
 * A file that is written anew and comes into its place only when it is whole: until then the old one
 * stays. A device or a pipe is written directly.
 */
export class OutputFile {
  readonly name: string
  readonly fd: number
  /** Where the bytes go until `commit`. */
  readonly path: string
  #target: string

  /**
   * Opens it, once it has a reader where it is a FIFO.
   *
   * @param interrupted aborted where nobody waits for one any longer
   * @throws ToolError where it cannot be written, Interrupted
   */
  static async open(name: string, interrupted: AbortSignal): Promise<OutputFile> {
    const pipe = await openPipe(name, interrupted).catch((error: unknown) => {
      throw ioError(error, name, 'write')
    })
    return new OutputFile(name, pipe)
  }

  /**
   * @param pipe the descriptor of a FIFO that is open
   * @throws ToolError where it cannot be written
   */
  constructor(name: string, pipe?: number) {
    this.name = name
    try {
      const stats = statSync(name, { throwIfNoEntry: false })
      this.#target = stats === undefined ? name : realpathSync(name)
      const isReplaced = stats === undefined || stats.isFile()
      this.path = isReplaced ? `${this.#target}.${process.pid}.tmp` : this.#target
      this.fd = pipe ?? openSync(this.path, 'w', stats?.mode)
    } catch (error) {
      throw ioError(error, name, 'write')
    }
  }

  /** Brings the bytes to the disk and the file into its place. */
  commit(): void {
    try {
      if (this.path !== this.#target) fsyncSync(this.fd)
      closeSync(this.fd)
      if (this.path !== this.#target) renameSync(this.path, this.#target)
    } catch (error) {
      throw ioError(error, this.name, 'write')
    }
  }

  /** Leaves what was there before. */
  discard(): void {
    closeSync(this.fd)
    if (this.path !== this.#target) unlinkSync(this.path)
  }
}
