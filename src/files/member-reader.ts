import type { ByteReader } from '../core/byte-reader.ts'
import { ToolError } from '../core/tool-error.ts'
import type { RereadableSource } from './byte-reader.ts'
import { Damage, type Member, type MemberKind } from './member.ts'
import { Pieces } from './pieces.ts'

/**
 * Of compressed bytes one in 2^27 looks like a header of gzip, one in 2^33 like one of zstd: more are
 * made so.
 */
const MOST_FAILED = 1000

/**
 * Decompresses gzip or zstd, also several members one after the other, as killed and restarted writers
 * append them. Everything that can be decompressed is given before an error is thrown: what stands
 * before the damage, for which a broken member may be read again, and the members behind it.
 */
export class MemberReader implements ByteReader {
  #chunks: AsyncGenerator<Buffer, void, void>
  #chunk: Buffer = Buffer.alloc(0)

  /**
   * @param name the file's name, for the error
   * @throws ToolError `gzip-truncated`, `zstd-truncated` from `read` where the stream is cut, broken or
   *   followed by other bytes
   */
  constructor(source: RereadableSource, kind: MemberKind, name: string) {
    this.#chunks = new Rescue(source, kind).chunks(name)
  }

  async read(into: Buffer, offset: number, length: number): Promise<number> {
    while (this.#chunk.length === 0) {
      const next = await this.#chunks.next()
      if (next.done) return 0
      this.#chunk = next.value
    }
    const count = this.#chunk.copy(into, offset, 0, length)
    this.#chunk = this.#chunk.subarray(count)
    return count
  }
}

/** How a member was read: undefined where the next one follows, else where that is looked for. */
type Outcome = 'end' | number | undefined

/** Reads all members, and goes on behind damage. */
class Rescue {
  #source: RereadableSource
  #kind: MemberKind
  /** The first damage met, as the message says it. */
  #damage: string | undefined
  #failedTrials = 0

  constructor(source: RereadableSource, kind: MemberKind) {
    this.#source = source
    this.#kind = kind
  }

  async *chunks(name: string): AsyncGenerator<Buffer, void, void> {
    let pieces: Pieces | undefined = new Pieces(this.#source, this.#kind.header)
    while (pieces !== undefined) {
      const outcome: Outcome = yield* this.#member(pieces)
      if (outcome === 'end') break
      if (outcome !== undefined) pieces = await this.#memberFrom(outcome)
    }
    if (this.#damage === undefined) return
    const code = `${this.#kind.name}-truncated` as const
    throw new ToolError(code, this.#damage, { exitCode: 1, place: { file: name } })
  }

  /** Gives what the next member holds. */
  async *#member(pieces: Pieces): AsyncGenerator<Buffer, Outcome, void> {
    const start = pieces.offset
    const isMember = (offset: number): Promise<boolean> => this.#isMember(offset)
    const again = (offset: number): Pieces | undefined => this.#piecesFrom(offset)
    let member: Member | undefined
    try {
      member = await this.#kind.open(pieces, { isMember, again })
      if (member === undefined) return await this.#behindMembers(pieces)
      for (let chunk = await member.next(); chunk; chunk = await member.next()) yield chunk
      return undefined
    } catch (error) {
      if (!(error instanceof Damage)) throw error
      this.#damage ??= `the ${this.#kind.name} stream ${error.message}`
      const broken = error.searchFrom === undefined ? undefined : again(start)
      return broken && member?.rest ? yield* member.rest(broken) : error.searchFrom
    }
  }

  /** Tells what follows the last member: NULs fill a tape, and are no damage to gzip. */
  async #behindMembers(pieces: Pieces): Promise<Outcome> {
    const start = pieces.offset
    for (;;) {
      const piece = await pieces.next()
      if (piece.length === 0) return 'end'
      if (this.#kind.isPadded && piece.every((byte) => byte === 0)) continue
      const { name } = this.#kind
      this.#damage ??=
        start === 0
          ? `the ${name} stream is damaged`
          : `bytes that are no ${name} follow the end of the ${name} stream`
      return start
    }
  }

  /** The first member that begins from there on; undefined where none does. */
  async #memberFrom(offset: number): Promise<Pieces | undefined> {
    if (!this.#source.goOnFrom(offset)) return undefined
    const pieces = new Pieces(this.#source, this.#kind.header, offset)
    do {
      if ((await pieces.areAtHeader()) && (await this.#isMember(pieces.offset))) return pieces
    } while ((await pieces.next()).length > 0)
    return undefined
  }

  /** Whether what begins there can be decompressed to its end, or for a while. */
  async #isMember(offset: number): Promise<boolean> {
    const pieces = this.#failedTrials > MOST_FAILED ? undefined : this.#piecesFrom(offset)
    if (pieces === undefined) return false
    const succeeds = await this.#decompresses(pieces)
    if (!succeeds) this.#failedTrials++
    return succeeds
  }

  async #decompresses(pieces: Pieces): Promise<boolean> {
    const end = pieces.offset + this.#kind.trial
    let member: Member | undefined
    try {
      member = await this.#kind.open(pieces, {})
      while ((await member?.next()) !== undefined) if (pieces.offset >= end) break
      return member !== undefined
    } catch (error) {
      if (!(error instanceof Damage)) throw error
      return error.isSound
    } finally {
      member?.close()
    }
  }

  #piecesFrom(offset: number): Pieces | undefined {
    const source = this.#source.again(offset)
    return source && new Pieces(source, this.#kind.header, offset)
  }
}
