import type { ByteReader } from '../core/byte-reader.ts'
import { ToolError } from '../core/tool-error.ts'
import type { RereadableSource } from './byte-reader.ts'
import { GzipDamage, GzipMember } from './gzip-member.ts'
import { Pieces } from './gzip-pieces.ts'

/** So many compressed bytes that can be decompressed are no chance. */
const TRIAL = 64 * 1024

/** Of compressed bytes one in 2^27 looks like a header: more are made so. */
const MOST_TRIALS = 1000

/**
 * Decompresses gzip, also several members one after the other, as killed and restarted writers append
 * them. Everything that can be decompressed is given before an error is thrown: what stands before
 * the damage up to its byte, for which a broken member is read again, and the members behind it.
 */
export class GzipReader implements ByteReader {
  #chunks: AsyncGenerator<Buffer, void, void>
  #chunk: Buffer = Buffer.alloc(0)

  /**
   * @param name the file's name, for the error
   * @throws ToolError `gzip-truncated` from `read` where the stream is cut, broken or followed by
   *   bytes that are no gzip
   */
  constructor(source: RereadableSource, name: string) {
    this.#chunks = new Rescue(source).chunks(name)
  }

  async read(into: Buffer, offset: number, length: number): Promise<number> {
    if (this.#chunk.length === 0) {
      const next = await this.#chunks.next()
      if (next.done) return 0
      this.#chunk = next.value
    }
    const count = this.#chunk.copy(into, offset, 0, length)
    this.#chunk = this.#chunk.subarray(count)
    return count
  }
}

/** Where a member failed. */
interface FailedMember {
  start: number
  /** Where the piece begins in which the damage was met. */
  before: number
  given: number
}

/** How a member was read: undefined where all of it was given. */
type Outcome = 'end' | 'foreign' | FailedMember | undefined

/** Reads all members, and goes on behind damage. */
class Rescue {
  #source: RereadableSource
  /** The first damage met, as the message says it. */
  #damage: string | undefined
  #trials = 0

  constructor(source: RereadableSource) {
    this.#source = source
  }

  async *chunks(name: string): AsyncGenerator<Buffer, void, void> {
    let pieces: Pieces | undefined = new Pieces(this.#source)
    while (pieces !== undefined) {
      const start: number = pieces.offset
      const outcome: Outcome = yield* this.#member(pieces)
      if (outcome === 'end') break
      if (outcome === 'foreign') pieces = await this.#memberFrom(start)
      else if (outcome !== undefined) pieces = await this.#memberFrom(yield* this.#again(outcome))
    }
    if (this.#damage === undefined) return
    throw new ToolError('gzip-truncated', this.#damage, { exitCode: 1, place: { file: name } })
  }

  /** Gives what the next member holds; returns how it failed, where it did. */
  async *#member(pieces: Pieces): AsyncGenerator<Buffer, Outcome, void> {
    const start = pieces.offset
    const isMember = (offset: number): Promise<boolean> => this.#isMember(offset)
    let member: GzipMember | undefined
    try {
      member = await GzipMember.open(pieces, { isMember })
      if (member === undefined) return await this.#behindMembers(pieces)
      for (let chunk = await member.next(); chunk; chunk = await member.next()) yield chunk
      return undefined
    } catch (error) {
      if (!(error instanceof GzipDamage)) throw error
      this.#damage ??= `the gzip stream ${error.message}`
      if (member === undefined || error.isCut || error.complete) return undefined
      return { start, before: member.before, given: member.given }
    }
  }

  /** Tells what follows the last member: NULs fill a tape, and are no damage. */
  async #behindMembers(pieces: Pieces): Promise<'end' | 'foreign'> {
    const isFirst = pieces.offset === 0
    for (;;) {
      const piece = await pieces.next()
      if (piece.length === 0) return 'end'
      if (piece.every((byte) => byte === 0)) continue
      this.#damage ??= isFirst
        ? 'the gzip stream is damaged'
        : 'bytes that are no gzip follow the end of the gzip stream'
      return 'foreign'
    }
  }

  /** Reads a failed member again; gives what it gave not before, and returns where it fails. */
  async *#again({ start, before, given }: FailedMember): AsyncGenerator<Buffer, number, void> {
    const pieces = this.#piecesFrom(start)
    if (pieces === undefined) return start
    const member = await GzipMember.open(pieces, { steady: before })
    try {
      for (let known = 0; ; ) {
        const chunk = await member?.next()
        if (chunk === undefined) return pieces.offset
        if (known + chunk.length > given) yield chunk.subarray(Math.max(0, given - known))
        known += chunk.length
      }
    } catch (error) {
      if (!(error instanceof GzipDamage)) throw error
      return pieces.offset
    }
  }

  /** The first member that begins from there on; undefined where none does. */
  async #memberFrom(offset: number): Promise<Pieces | undefined> {
    const pieces = this.#piecesFrom(offset)
    if (pieces === undefined) return undefined
    do {
      if ((await pieces.areAtHeader()) && (await this.#isMember(pieces.offset))) return pieces
    } while ((await pieces.next()).length > 0)
    return undefined
  }

  /** Whether what begins there can be decompressed to its end, or for a while. */
  async #isMember(offset: number): Promise<boolean> {
    const pieces = ++this.#trials > MOST_TRIALS ? undefined : this.#piecesFrom(offset)
    if (pieces === undefined) return false
    let member: GzipMember | undefined
    try {
      member = await GzipMember.open(pieces)
      while (pieces.offset < offset + TRIAL) if ((await member?.next()) === undefined) break
      return member !== undefined
    } catch (error) {
      if (!(error instanceof GzipDamage)) throw error
      return error.isCut && !error.complete
    } finally {
      member?.close()
    }
  }

  #piecesFrom(offset: number): Pieces | undefined {
    const source = this.#source.again(offset)
    return source && new Pieces(source, offset)
  }
}
