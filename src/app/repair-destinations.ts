import type { Context } from '../cli/command.ts'
import type { Removal, RepairTarget } from '../core/repair-target.ts'
import { FdSink } from '../files/fd-sink.ts'
import type { InPlaceFile } from '../files/in-place.ts'
import type { Pieces } from './repair-pieces.ts'

const NEWLINE = Buffer.from('\n')

/** A file of which so much has been read is no longer refused: what was held back is written. */
const HELD_BACK = 1024 * 1024

/** Where one repaired file goes. */
export interface Destination extends RepairTarget {
  /** Frees the bytes of the block that ends at `offset` in the file. */
  settle(offset: number): Promise<void>
  /** The file is repaired. */
  commit(): Promise<void>
  /** The file is refused, or the run ends by an error. */
  abandon(): Promise<void>
  /** A signal ends the run: where a part of a file is of use, that is written. */
  interrupt(): Promise<void>
  /** Whether what was done so far is done, though the file has not come to its end. */
  readonly stays: boolean
}

interface Range {
  bytes: Buffer
  start: number
  end: number
}

/** Standard output. What a file begins with is held back while the file may still be refused. */
export class FilterDestination implements Destination {
  #out: FdSink
  #pieces: Pieces
  #held: Range[] = []
  #fresh: Range[] = []
  #committed = false

  constructor(out: FdSink, pieces: Pieces) {
    this.#out = out
    this.#pieces = pieces
  }

  keep(bytes: Buffer, start: number, end: number): void {
    if (this.#committed) this.#out.add(bytes, start, end)
    else this.#fresh.push({ bytes, start, end })
  }

  addNewline(): void {
    this.keep(NEWLINE, 0, 1)
  }

  remove(removal: Removal): void {
    this.#pieces.add(removal)
  }

  mayRefuse(offset: number): boolean {
    return offset < HELD_BACK
  }

  async settle(offset: number): Promise<void> {
    if (offset >= HELD_BACK) {
      await this.#add()
      return this.#out.flushBehind()
    }
    for (const { bytes, start, end } of this.#fresh.splice(0)) {
      const copy = Buffer.from(bytes.subarray(start, end))
      this.#held.push({ bytes: copy, start: 0, end: copy.length })
    }
    await this.#pieces.settle(true)
  }

  async commit(): Promise<void> {
    await this.#add()
    await this.#out.flush()
    await this.#pieces.commit()
  }

  async abandon(): Promise<void> {
    if (!this.#committed) await this.#pieces.rollback()
    await this.#out.idle()
  }

  async interrupt(): Promise<void> {
    await this.#add()
    if (!this.#committed) return this.abandon()
    await this.#out.flush()
    await this.#pieces.commit()
  }

  get stays(): boolean {
    return this.#committed
  }

  async #add(): Promise<void> {
    const ranges = [...this.#held.splice(0), ...this.#fresh.splice(0)]
    // A file without any record so far may be refused at its end.
    if (ranges.length > 0) this.#committed = true
    // Removed bytes are on their way before the output goes on without them.
    await this.#pieces.settle(!this.#committed)
    if (this.#committed) this.#pieces.tell()
    for (const { bytes, start, end } of ranges) this.#out.add(bytes, start, end)
  }
}

/** The file itself. */
export class InPlaceDestination implements Destination {
  readonly stays = false
  #file: InPlaceFile
  #pieces: Pieces
  #suffix: string

  constructor(file: InPlaceFile, pieces: Pieces, suffix: string) {
    this.#file = file
    this.#pieces = pieces
    this.#suffix = suffix
  }

  keep(bytes: Buffer, start: number, end: number, offset: number): void {
    this.#file.keep(bytes, start, end, offset)
  }

  addNewline(): void {
    this.#file.keep(NEWLINE, 0, 1, -1)
  }

  remove(removal: Removal): void {
    this.#pieces.add(removal)
  }

  mayRefuse(): boolean {
    return true
  }

  async settle(): Promise<void> {
    await this.#file.flush()
    await this.#pieces.settle(true)
  }

  /** The removed bytes are on the disk before the file without them is. */
  async commit(): Promise<void> {
    this.#file.end()
    if (!this.#file.changed) {
      await this.#file.checkUntouched()
    } else {
      await this.#file.flush()
      await this.#file.checkUntouched()
      await this.#pieces.commit()
      await this.#file.replace(this.#suffix)
    }
    await this.#file.close()
  }

  async abandon(): Promise<void> {
    try {
      await this.#pieces.rollback()
    } finally {
      await this.#file.close()
    }
  }

  interrupt(): Promise<void> {
    return this.abandon()
  }
}

/** Nowhere: the file is only looked at. */
export class CheckDestination implements Destination {
  readonly stays = true
  #pieces: Pieces

  constructor(pieces: Pieces) {
    this.#pieces = pieces
  }

  keep(): void {}

  addNewline(): void {}

  remove(removal: Removal): void {
    this.#pieces.add(removal)
  }

  mayRefuse(): boolean {
    return true
  }

  async settle(): Promise<void> {
    await this.#pieces.settle(false)
  }

  async commit(): Promise<void> {}

  async abandon(): Promise<void> {}

  async interrupt(): Promise<void> {}
}

/** Standard output as a sink that several files share. */
export function standardOutput(context: Context): FdSink {
  return new FdSink(context.stdout.fd, '<stdout>')
}
