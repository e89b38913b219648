import { ByteBuilder } from '../../core/byte-builder.ts'
import { RowHash } from '../../core/row-hash.ts'
import { writeAll } from '../../files/fd-sink.ts'
import { HashOrder } from '../../files/hash-order.ts'
import type { ExtractOptions } from './options.ts'
import type { RecordIds } from './record-ids.ts'

const HEAD = Buffer.from('{"id":')
const COMMA = 0x2c
/** Records that come out of a shuffle are gathered to writes of about this size. */
const WRITE_SIZE = 256 * 1024
/** The length of the id before a record that waits to be shuffled. */
const ID_LENGTH = 4

/** Why a usable row gives no record. */
export interface LeftOut {
  empty: number
  too_long: number
  sample: number
  skip: number
  limit: number
}

/** Chooses among the prompts (--sample, --shuffle, --skip, --limit) and writes them (--samples). */
export class Emitter {
  readonly leftOut: LeftOut = { empty: 0, too_long: 0, sample: 0, skip: 0, limit: 0 }
  /** Prompts that were passed on, and the records that they became. */
  prompts = 0
  records = 0
  #options: ExtractOptions
  #ids: RecordIds
  #fd: number
  #out = new ByteBuilder(512 * 1024)
  #sampling: RowHash | undefined
  #shuffling: RowHash | undefined
  #order: HashOrder | undefined
  #waiting = new ByteBuilder()
  #ordered = 0

  constructor(options: ExtractOptions, ids: RecordIds, fd: number) {
    this.#options = options
    this.#ids = ids
    this.#fd = fd
    const { sample, shuffle, skip, limit, seed } = options
    if (sample !== undefined) this.#sampling = new RowHash('sample', seed ?? '')
    if (shuffle === undefined) return
    this.#shuffling = new RowHash('shuffle', shuffle)
    this.#order = new HashOrder(limit === undefined ? undefined : skip + limit)
  }

  /** No more prompts are wanted. */
  get done(): boolean {
    const { limit } = this.#options
    return this.#order === undefined && limit !== undefined && this.prompts >= limit
  }

  /** Takes a prompt: its id and the members behind it, newline included. */
  take(id: ByteBuilder, body: ByteBuilder): void {
    const { sample } = this.#options
    if (this.#sampling !== undefined) {
      this.#sampling.ofToken(id.bytes, 0, id.length)
      if (this.#sampling.unit >= sample!) {
        this.leftOut.sample++
        return
      }
    }
    if (this.#order === undefined) {
      this.#choose(id.bytes, 0, id.length, body.bytes, 0, body.length)
      return
    }
    const hash = this.#shuffling!
    const waiting = this.#waiting
    hash.ofToken(id.bytes, 0, id.length)
    waiting.length = ID_LENGTH
    waiting.bytes.writeUInt32LE(id.length)
    waiting.append(id.bytes, 0, id.length)
    waiting.append(body.bytes, 0, body.length)
    this.#order.add(hash.high, hash.low, waiting.view())
    this.#ordered++
  }

  /** Writes what is ready. */
  async settle(): Promise<void> {
    await this.#order?.settle()
    await this.#write()
  }

  /** Writes what waited for its place in the order. */
  async finish(): Promise<void> {
    let given = 0
    for await (const record of this.#order?.inOrder() ?? []) {
      const { limit } = this.#options
      if (limit !== undefined && this.prompts >= limit) break
      const bodyAt = ID_LENGTH + record.readUInt32LE()
      this.#choose(record, ID_LENGTH, bodyAt, record, bodyAt, record.length)
      given++
      if (this.#out.length >= WRITE_SIZE) await this.#write()
    }
    this.leftOut.limit += this.#ordered - given
    await this.#write()
  }

  /** Removes what lies on disk. */
  async close(): Promise<void> {
    await this.#order?.close()
  }

  #choose(
    id: Buffer,
    idStart: number,
    idEnd: number,
    body: Buffer,
    bodyStart: number,
    bodyEnd: number,
  ): void {
    const { skip, samples } = this.#options
    if (this.leftOut.skip < skip) {
      this.leftOut.skip++
      return
    }
    this.prompts++
    for (let index = 0; index < samples; index++) {
      const out = this.#out
      out.append(HEAD)
      if (samples === 1) out.append(id, idStart, idEnd)
      else {
        const original = Buffer.from(id.subarray(idStart, idEnd))
        this.#ids.sample(original, { start: 0, end: original.length }, index)
        out.append(this.#ids.token.bytes, 0, this.#ids.token.length)
      }
      out.byte(COMMA)
      out.append(body, bodyStart, bodyEnd)
      this.records++
    }
  }

  async #write(): Promise<void> {
    if (this.#out.length > 0) await writeAll(this.#fd, this.#out.view(), '<stdout>')
    this.#out.length = 0
  }
}
