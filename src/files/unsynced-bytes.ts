import { type FileHandle, open } from 'node:fs/promises'

/**
 * What was appended to a file since its last sync. After a sync that failed the system may have
 * dropped it, and the next sync then succeeds without it (Rebello et al., "Can Applications Recover
 * from fsync Failures?", USENIX ATC 2020): it must be written again.
 */
export class UnsyncedBytes {
  #file: string
  /** Where the first piece stands in the file. */
  #start: number
  #pieces: Buffer[] = []
  #length = 0
  #areLost = false

  /** @param start the size of the file, to which nobody else appends */
  constructor(file: string, start: number) {
    this.#file = file
    this.#start = start
  }

  get length(): number {
    return this.#length
  }

  /** The size of the file: what a sync that begins now makes safe. */
  get end(): number {
    return this.#start + this.#length
  }

  /** Notes bytes that were appended; they must not change any more. */
  add(bytes: Buffer): void {
    this.#pieces.push(bytes)
    this.#length += bytes.length
  }

  /** A sync has failed: what it was for can no longer be trusted. */
  lose(): void {
    this.#areLost = true
  }

  /** A sync has succeeded that began when the file ended at `end`. */
  forget(end: number): void {
    while (this.#pieces.length > 0 && this.#start + this.#pieces[0]!.length <= end) {
      const { length } = this.#pieces.shift()!
      this.#start += length
      this.#length -= length
    }
  }

  /**
   * Writes what may be lost once more to where it stands.
   *
   * @throws the error of the system where it cannot
   */
  async restore(): Promise<void> {
    if (!this.#areLost) return
    const file = await open(this.#file, 'r+')
    try {
      let at = this.#start
      for (const piece of this.#pieces.slice()) {
        await writeAll(file, piece, at)
        at += piece.length
      }
      await file.datasync()
    } finally {
      await file.close()
    }
    this.#areLost = false
  }
}

async function writeAll(file: FileHandle, bytes: Buffer, position: number): Promise<void> {
  for (let at = 0; at < bytes.length; ) {
    at += (await file.write(bytes, at, bytes.length - at, position + at)).bytesWritten
  }
}
