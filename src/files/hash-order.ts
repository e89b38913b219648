import { mkdtempSync, rmSync } from 'node:fs'
import { type FileHandle, open } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { ByteBuilder } from '../core/byte-builder.ts'
import { ioError } from '../core/tool-error.ts'
import { writeAll } from './fd-sink.ts'

/** What is kept in memory before any of it goes to disk. */
const IN_MEMORY = 32 * 1024 * 1024
const BUCKETS = 256
/** Bytes of a bucket that are gathered before they are written. */
const GATHER = 64 * 1024
/** Hash (8 bytes) and length (4) before each record. */
const HEAD = 12

/**
 * Puts records into the order of their hashes in bounded memory: what does not fit goes into files of
 * one range of hashes each, which are sorted one at a time. A data set of D bytes needs D / 256 and
 * 16 MiB of memory, and D of temporary disk space (under $TMPDIR).
 */
export class HashOrder {
  #buckets: Bucket[] | undefined
  #first = new Bucket()
  #limit: number
  #folder: string | undefined

  /** @param limit records that are wanted at most: of more, only the first in order are kept */
  constructor(limit = Number.POSITIVE_INFINITY) {
    this.#limit = limit
  }

  /** Takes a record under the two words of its hash. */
  add(high: number, low: number, record: Uint8Array): void {
    const bucket = this.#buckets?.[high >>> 24] ?? this.#first
    bucket.add(high, low, record)
    if (this.#buckets === undefined && bucket.count > 2 * this.#limit + 1000) {
      bucket.keepFirst(this.#limit)
    }
  }

  /** Makes room in memory; to be called after every block of records. */
  async settle(): Promise<void> {
    if (this.#buckets === undefined) {
      if (this.#first.bytes.length > IN_MEMORY) await this.#scatter()
      return
    }
    for (const [index, bucket] of this.#buckets.entries()) {
      if (bucket.bytes.length >= GATHER) await bucket.write(this.#bucketPath(index))
    }
  }

  /** Gives the records in order; each is valid until the next. */
  async *inOrder(): AsyncGenerator<Buffer, void, void> {
    for (const bucket of this.#buckets ?? [this.#first]) {
      await bucket.load()
      yield* bucket.sorted()
      await bucket.close()
    }
  }

  /** Removes what lies on disk. */
  async close(): Promise<void> {
    for (const bucket of this.#buckets ?? []) await bucket.close()
    if (this.#folder !== undefined) rmSync(this.#folder, { recursive: true, force: true })
    this.#folder = undefined
  }

  async #scatter(): Promise<void> {
    if (this.#first.count > this.#limit) this.#first.keepFirst(this.#limit)
    if (this.#first.bytes.length <= IN_MEMORY) return
    const buckets = Array.from({ length: BUCKETS }, () => new Bucket())
    for (const at of this.#first.places()) {
      const { high, low, record } = this.#first.entry(at)
      buckets[high >>> 24]!.add(high, low, record)
    }
    this.#first = new Bucket()
    this.#buckets = buckets
    for (const [index, bucket] of buckets.entries()) await bucket.write(this.#bucketPath(index))
  }

  #bucketPath(index: number): string {
    this.#folder ??= mkdtempSync(join(tmpdir(), 'extract-prompts-'))
    return join(this.#folder, String(index))
  }
}

interface Entry {
  high: number
  low: number
  record: Buffer
}

/** Records of one range of hashes, in the order in which they came. */
class Bucket {
  bytes = new ByteBuilder(16)
  count = 0
  #file: FileHandle | undefined
  #path = ''

  add(high: number, low: number, record: Uint8Array): void {
    this.bytes.reserve(HEAD + record.length)
    const { bytes, length } = this.bytes
    bytes.writeUInt32LE(high, length)
    bytes.writeUInt32LE(low, length + 4)
    bytes.writeUInt32LE(record.length, length + 8)
    this.bytes.length += HEAD
    this.bytes.append(record)
    this.count++
  }

  /** Where the records begin, as they came. */
  places(): Uint32Array<ArrayBuffer> {
    const places = new Uint32Array(this.count)
    const { bytes } = this.bytes
    let at = 0
    for (let index = 0; index < this.count; index++) {
      places[index] = at
      at += HEAD + bytes.readUInt32LE(at + 8)
    }
    return places
  }

  entry(at: number): Entry {
    const { bytes } = this.bytes
    const start = at + HEAD
    return {
      high: bytes.readUInt32LE(at),
      low: bytes.readUInt32LE(at + 4),
      record: bytes.subarray(start, start + bytes.readUInt32LE(at + 8)),
    }
  }

  /** In the order of the hashes; equal ones as they came. */
  *sorted(): Generator<Buffer, void, void> {
    for (const at of this.#sortedPlaces()) yield this.entry(at).record
  }

  /** Drops all but the first records of the order, in place: they stay as they came. */
  keepFirst(count: number): void {
    const kept = this.#sortedPlaces().subarray(0, count).sort()
    const { bytes } = this.bytes
    let end = 0
    for (const at of kept) {
      const next = at + HEAD + bytes.readUInt32LE(at + 8)
      bytes.copyWithin(end, at, next)
      end += next - at
    }
    this.bytes.length = end
    this.count = kept.length
  }

  /** Appends what is gathered to the bucket's file. */
  async write(path: string): Promise<void> {
    try {
      this.#file ??= await open(path, 'w+')
      this.#path = path
      await writeAll(this.#file.fd, this.bytes.view(), path)
      this.bytes.length = 0
    } catch (error) {
      throw ioError(error, path, 'write')
    }
  }

  /** Reads back what was written; it comes before what is still gathered. */
  async load(): Promise<void> {
    if (this.#file === undefined) return
    await this.write(this.#path)
    const { size } = await this.#file.stat()
    this.bytes = new ByteBuilder(size)
    while (this.bytes.length < size) {
      const { length } = this.bytes
      const { bytesRead } = await this.#file.read(this.bytes.bytes, length, size - length, length)
      if (bytesRead === 0) break
      this.bytes.length += bytesRead
    }
  }

  async close(): Promise<void> {
    await this.#file?.close()
    this.#file = undefined
    this.bytes = new ByteBuilder(16)
  }

  /** Places alone are sorted: an object for each record would take more memory than short ones do. */
  #sortedPlaces(): Uint32Array<ArrayBuffer> {
    const { buffer, byteOffset } = this.bytes.bytes
    const view = new DataView(buffer, byteOffset)
    const word = (at: number): number => view.getUint32(at, true)
    return this.places().sort((a, b) => word(a) - word(b) || word(a + 4) - word(b + 4) || a - b)
  }
}
