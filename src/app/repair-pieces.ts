import type { Context } from '../cli/command.ts'
import { salvage } from '../core/repair-salvage.ts'
import type { Removal } from '../core/repair-target.ts'
import type { RemovedFile } from '../files/removed-file.ts'

/** Pieces that may have to be taken back are held up to this many bytes, then written. */
const HELD_MOST = 16 * 1024 * 1024

/** Messages about single pieces, per file. */
const TOLD_MOST = 20

/** What becomes of the removed pieces of one file: where they go, and what is said about them. */
export class Pieces {
  #context: Context
  #removed: RemovedFile | undefined
  #salvaged: RemovedFile | undefined
  #fate: string
  /** Pieces whose bytes lie in the block in work. */
  #fresh: Removal[] = []
  #held: Removal[] = []
  #heldBytes = 0
  #messages: (() => void)[] = []
  #told = 0
  #untold = 0

  /** @param fate what a message says has become of a piece where nothing keeps it */
  constructor(
    context: Context,
    files: { removed: RemovedFile | undefined; salvaged: RemovedFile | undefined },
    fate: string,
  ) {
    this.#context = context
    this.#removed = files.removed
    this.#salvaged = files.salvaged
    this.#fate = fate
  }

  /** Takes a piece, whose bytes must stay as they are until `settle`. */
  add(removal: Removal): void {
    this.#fresh.push(removal)
    this.#message(removal)
  }

  /** Remembers where the files end now, for `rollback`. */
  async begin(): Promise<void> {
    await this.#removed?.mark()
    await this.#salvaged?.mark()
  }

  /** Frees the block's bytes: writes the pieces, or holds them where they may be taken back. */
  async settle(hold: boolean): Promise<void> {
    const bytes = this.#fresh.reduce((sum, { bytes }) => sum + bytes.length, this.#heldBytes)
    if (!hold || bytes > HELD_MOST) return this.#write()
    for (const removal of this.#fresh.splice(0)) {
      this.#held.push({ ...removal, bytes: Buffer.from(removal.bytes) })
    }
    this.#heldBytes = bytes
  }

  /** Writes what is held, and brings it to the disk. */
  async commit(): Promise<void> {
    await this.#write()
    await this.#removed?.sync()
    await this.#salvaged?.sync()
  }

  async rollback(): Promise<void> {
    this.#fresh = []
    this.#held = []
    await this.#removed?.rollback()
    await this.#salvaged?.rollback()
  }

  /** Says what has been removed since it was last said. */
  tell(): void {
    for (const message of this.#messages.splice(0)) message()
  }

  /** Says how many pieces there were besides those that were named. */
  tellRest(file: string): void {
    this.tell()
    if (this.#untold === 0) return
    const rest = this.#untold === 1 ? 'one more piece' : `${this.#untold} more pieces`
    this.#context.report.error(`${rest} ${this.#where()}`, undefined, { file })
  }

  async #write(): Promise<void> {
    const removals = [...this.#held.splice(0), ...this.#fresh.splice(0)]
    this.#heldBytes = 0
    await this.#removed?.addAll(removals)
    if (this.#salvaged === undefined) return
    const rescued = removals.map(({ bytes }) => salvage(bytes))
    await this.#salvaged.addLines(rescued.filter((line) => line !== undefined))
  }

  #message({ kind, message, code, bytes: { length }, ...at }: Removal): void {
    if (this.#told === TOLD_MOST) {
      this.#untold++
      return
    }
    this.#told++
    const bytes = length === 1 ? '1 byte' : `${length} bytes`
    const text = `${message}: ${bytes} at offset ${at.offset} ${this.#where()}`
    const { report } = this.#context
    const place = { file: at.file, line: at.line, column: at.column }
    this.#messages.push(() => {
      if (kind === 'tail') report.warning(text, code, place)
      else report.error(text, code, place)
    })
  }

  #where(): string {
    return this.#removed === undefined ? this.#fate : `removed, now in ${this.#removed.path}`
  }
}
