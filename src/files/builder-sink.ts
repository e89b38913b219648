import { ByteBuilder } from '../core/byte-builder.ts'
import { draftBytes } from '../core/kernel.ts'
import { writeAll } from './fd-sink.ts'

const CAPACITY = 512 * 1024

/** Writes what is put together in a builder, while the next bytes are put together in another. */
export class BuilderSink {
  /** Where bytes are put together; what stays in it is written by the next flush. */
  readonly draft: ByteBuilder
  #fd: number
  #name: string
  /** The memory that is being written, or is free. */
  #spare: Buffer
  #writing: Promise<void> | undefined

  /** @param name the file's name for error messages */
  constructor(fd: number, name: string) {
    this.#fd = fd
    this.#name = name
    this.draft = new ByteBuilder(CAPACITY, draftBytes)
    this.#spare = draftBytes(CAPACITY)
  }

  /**
   * Begins to write the draft, once what the call before began to write is written.
   *
   * @throws ClosedPipe where the reader of a pipe has gone, ToolError on other write errors, those of
   *   the write before; the draft is then empty, since one message is enough
   */
  async flushBehind(): Promise<void> {
    await this.#written()
    const { draft } = this
    if (draft.length === 0) return
    const { bytes, length } = draft
    draft.bytes = this.#spare
    draft.length = 0
    this.#spare = bytes
    this.#writing = writeAll(this.#fd, bytes.subarray(0, length), this.#name)
    // Its error is that of the next call.
    this.#writing.catch(() => {})
  }

  /**
   * Writes the draft and waits for it.
   *
   * @throws as `flushBehind`
   */
  async flush(): Promise<void> {
    await this.flushBehind()
    await this.#written()
  }

  /** Waits for the end of the write that is under way, good or bad: only then may the file be closed. */
  async settled(): Promise<void> {
    await this.#writing?.catch(() => {})
  }

  async #written(): Promise<void> {
    const writing = this.#writing
    this.#writing = undefined
    try {
      await writing
    } catch (error) {
      this.draft.length = 0
      throw error
    }
  }
}
