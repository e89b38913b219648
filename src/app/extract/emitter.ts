import { ByteBuilder } from '../../core/byte-builder.ts'
import { stringText } from '../../core/json-string.ts'
import { RowHash } from '../../core/row-hash.ts'
import { type Shard, shardOfBytes } from '../../core/shard.ts'
import { BuilderSink } from '../../files/builder-sink.ts'
import { HashOrder } from '../../files/hash-order.ts'
import type { ExtractOptions } from './options.ts'
import { appendSampleId } from './record-ids.ts'

const HEAD = Buffer.from('{"id":')
/** Records that come out of a shuffle are gathered to writes of about this size. */
const WRITE_SIZE = 256 * 1024
/** The length of the id, before a record that waits to be shuffled. */
const ID_LENGTH = 4

/** Why a usable row gives no record. */
interface LeftOut {
  empty: number
  too_long: number
  sample: number
  skip: number
  limit: number
  /** Read, and not written when the run ended before its input did. */
  unwritten: number
}

/** Chooses among the prompts (--sample, --shuffle, --skip, --limit) and writes them (--samples, --shard). */
export class Emitter {
  readonly leftOut: LeftOut = {
    empty: 0,
    too_long: 0,
    sample: 0,
    skip: 0,
    limit: 0,
    unwritten: 0,
  }
  /** Prompts that were passed on, and the records that they became. */
  prompts = 0
  records = 0
  /** Records that the tasks of other shards write. */
  otherShards = 0
  /** Where a record is drafted: in the output itself, where nothing more is to be done to it. */
  readonly draft: ByteBuilder
  #options: ExtractOptions
  #sink: BuilderSink
  #out: ByteBuilder
  #begun = 0
  #sampling: RowHash | undefined
  #shuffling: RowHash | undefined
  #order: HashOrder | undefined
  #waiting = new ByteBuilder()
  /** Prompts that wait for their place in the order. */
  #ordered = 0
  #shard: Shard | undefined

  constructor(options: ExtractOptions, fd: number, shard: Shard | undefined) {
    this.#options = options
    this.#shard = shard
    this.#sink = new BuilderSink(fd, '<stdout>')
    this.#out = this.#sink.draft
    const { sample, shuffle, skip, limit, seed, samples } = options
    if (sample !== undefined) this.#sampling = new RowHash('sample', seed ?? '')
    if (shuffle !== undefined) {
      this.#shuffling = new RowHash('shuffle', shuffle)
      this.#order = new HashOrder(limit === undefined ? undefined : skip + limit)
    }
    this.draft = shuffle === undefined && samples === 1 ? this.#out : new ByteBuilder()
  }

  /** No more prompts are wanted. */
  get done(): boolean {
    const { limit } = this.#options
    return this.#order === undefined && limit !== undefined && this.prompts >= limit
  }

  /** Begins a record in `draft`: the id's token must follow, then the rest from its comma on. */
  begin(): void {
    this.#begun = this.draft.length
    this.draft.append(HEAD)
  }

  /** Takes back what was drafted. */
  drop(): void {
    this.draft.length = this.#begun
  }

  /** Takes the record that was drafted; its id ends at `idEnd`. */
  take(idEnd: number): void {
    const { draft } = this
    const idStart = this.#begun + HEAD.length
    if (!this.#isSampled(idStart, idEnd)) {
      this.leftOut.sample++
      this.drop()
    } else if (this.#order !== undefined) {
      this.#wait(idStart, idEnd)
      this.drop()
    } else if (draft !== this.#out) {
      this.#choose(draft.bytes, idStart, idEnd, draft.length)
      this.drop()
    } else if (this.#skips()) this.drop()
    else {
      this.prompts++
      this.#count(this.#begun, idEnd)
    }
  }

  /** Writes what is ready. */
  async settle(): Promise<void> {
    await this.#order?.settle()
    await this.#sink.flushBehind()
  }

  /** Writes what waited for its place in the order. */
  async finish(): Promise<void> {
    for await (const record of this.#order?.inOrder() ?? []) {
      const { limit } = this.#options
      if (limit !== undefined && this.prompts >= limit) break
      this.#choose(record, ID_LENGTH, ID_LENGTH + record.readUInt32LE(), record.length)
      this.#ordered--
      if (this.#out.length >= WRITE_SIZE) await this.#sink.flushBehind()
    }
    this.leftOut.limit += this.#ordered
    this.#ordered = 0
    await this.#sink.flush()
  }

  /** Ends the write that is under way, and removes what lies on disk. */
  async close(): Promise<void> {
    this.leftOut.unwritten += this.#ordered
    await this.#sink.settled()
    await this.#order?.close()
  }

  #isSampled(idStart: number, idEnd: number): boolean {
    if (this.#sampling === undefined) return true
    this.#sampling.ofToken(this.draft.bytes, idStart, idEnd)
    return this.#sampling.unit < this.#options.sample!
  }

  #wait(idStart: number, idEnd: number): void {
    const waiting = this.#waiting
    const hash = this.#shuffling!
    hash.ofToken(this.draft.bytes, idStart, idEnd)
    waiting.length = ID_LENGTH
    waiting.bytes.writeUInt32LE(idEnd - idStart)
    waiting.append(this.draft.bytes, idStart, this.draft.length)
    this.#order!.add(hash.high, hash.low, waiting.view())
    this.#ordered++
  }

  /** Writes the record whose id token and rest lie in `bytes`, unless it is to be skipped. */
  #choose(bytes: Buffer, idStart: number, idEnd: number, end: number): void {
    if (this.#skips()) return
    const { samples } = this.#options
    const out = this.#out
    this.prompts++
    for (let sample = 0; sample < samples; sample++) {
      const begun = out.length
      out.append(HEAD)
      if (samples === 1) out.append(bytes, idStart, idEnd)
      else appendSampleId(out, bytes, idStart, idEnd, sample)
      if (this.#count(begun, out.length)) out.append(bytes, idEnd, end)
    }
  }

  /** Counts the record that begins in the output; takes it back where it is another shard's. */
  #count(begun: number, idEnd: number): boolean {
    const out = this.#out
    const isOwn = this.#shard === undefined || this.#isOfShard(begun + HEAD.length, idEnd)
    if (isOwn) this.records++
    else {
      this.otherShards++
      out.length = begun
    }
    return isOwn
  }

  #isOfShard(idStart: number, idEnd: number): boolean {
    const { bytes } = this.#out
    const { index, count } = this.#shard!
    const isText = bytes[idStart] === 0x22
    const id = isText ? stringText(bytes, idStart, idEnd) : { bytes, start: idStart, end: idEnd }
    return shardOfBytes(id, count) === index
  }

  #skips(): boolean {
    if (this.leftOut.skip === this.#options.skip) return false
    this.leftOut.skip++
    return true
  }
}
