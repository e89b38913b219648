import type { Decompress } from 'fzstd'
import { Xxh64 } from '../core/xxh64.ts'
import {
  Damage,
  endsEarly,
  isDamaged,
  type Member,
  type MemberKind,
  type MemberOptions,
} from './member.ts'
import type { Pieces } from './pieces.ts'
import { isEndless } from './zstd-endless.ts'
import {
  BLOCK_HEADER,
  type BlockHeader,
  blockHeader,
  CHECKSUM,
  type FrameHeader,
  frameHeader,
  HEADER_START,
  hasMagic,
  headerLength,
  isCutMagic,
  isSkippable,
  LARGEST_BLOCK,
  magicsIn,
  plainHeader,
  SKIPPABLE_HEADER,
  ZSTD_HEADER,
} from './zstd-format.ts'

/** The largest window that `zstd -d` takes unasked: the library has it in memory. */
const LARGEST_WINDOW = 128 * 1024 * 1024

/** So many headers of blocks in a row are no chance: one of twenty sequences of three bytes is one. */
const TELLING_BLOCKS = 3

const EMPTY = Buffer.alloc(0)

type Library = typeof import('fzstd')

/**
 * zstd, decompressed in plain JavaScript (fzstd; Node's own zlib has zstd only from 22.15 on). Loads
 * the decompressor, which no other run needs.
 */
export async function zstdKind(): Promise<MemberKind> {
  const library = await import('fzstd')
  return {
    name: 'zstd',
    header: ZSTD_HEADER,
    isPadded: false,
    // One block that holds something: its frame's header is evidence enough.
    trial: 0,
    open: (pieces, options) => openFrame(library, pieces, options),
  }
}

async function openFrame(
  library: Library,
  pieces: Pieces,
  options: MemberOptions,
): Promise<ZstdFrame | undefined> {
  await passSkippable(pieces)
  const start = pieces.offset
  const ahead = await pieces.ahead()
  if (!hasMagic(ahead)) {
    if (!isCutMagic(ahead)) return undefined
    await pieces.skip(ahead.length)
    throw endsEarly()
  }
  if (ahead.length === HEADER_START && !ZSTD_HEADER.mayBegin(ahead)) throw isDamaged(start + 1)
  const length = headerLength(ahead[HEADER_START - 1] ?? 0)
  const bytes = await pieces.exactly(length)
  if (bytes.length < length) throw endsEarly(true)
  return new ZstdFrame(library, pieces, options, start, frameHeader(bytes))
}

/** Passes over frames that hold nothing to decompress, as pzstd writes them. */
async function passSkippable(pieces: Pieces): Promise<void> {
  while (isSkippable(await pieces.ahead())) {
    const header = await pieces.exactly(SKIPPABLE_HEADER)
    if (header.length < SKIPPABLE_HEADER) throw endsEarly()
    const body = pieces.offset
    const size = header.readUInt32LE(4)
    if ((await pieces.skip(size)) < size) throw new Damage('ends early', body)
    // A wrong size leads into another frame, or over many.
    if (!isBoundary(await pieces.ahead())) throw isDamaged(body)
  }
}

/** Whether a frame may have ended where these bytes follow. */
function isBoundary(ahead: Buffer): boolean {
  return ahead.length === 0 || hasMagic(ahead) || isSkippable(ahead)
}

/** A block as the file has it. */
interface Block extends BlockHeader {
  head: Buffer
  body: Buffer
}

/**
 * Decompresses one frame. The library is given whole blocks, so that it gives each before it fails;
 * it knows no checksum, and waits for no end.
 */
class ZstdFrame implements Member {
  #library: Library
  #pieces: Pieces
  #options: MemberOptions
  #header: FrameHeader
  /** Why it cannot be decompressed: its blocks are passed over. */
  #unreadable: string | undefined
  #decompress: Decompress | undefined
  #chunk: Buffer = EMPTY
  #hash = new Xxh64()
  #given = 0
  /** Where the next frame is looked for if the next block is none. */
  #searchFrom: number
  #isAtEnd = false

  constructor(
    library: Library,
    pieces: Pieces,
    options: MemberOptions,
    start: number,
    header: FrameHeader,
  ) {
    this.#library = library
    this.#pieces = pieces
    this.#options = options
    this.#header = header
    this.#unreadable = unreadable(header)
    this.#searchFrom = start + 1
    if (this.#unreadable && this.#isTrial()) throw new Damage(this.#unreadable)
  }

  async next(): Promise<Buffer | undefined> {
    while (!this.#isAtEnd) {
      const block = await this.#block()
      if (!this.#unreadable && !block.isEmpty) {
        this.#decompress ??= this.#begin(await this.#holdsAll(block))
        this.#feed(this.#decompress, block)
      }
      this.#isAtEnd = block.isLast
      this.#searchFrom = this.#pieces.offset
      const chunk = this.#chunk
      this.#chunk = EMPTY
      if (chunk.length === 0) continue
      this.#given += chunk.length
      if (this.#header.hasChecksum) this.#hash.update(chunk)
      return chunk
    }
    return this.#end()
  }

  close(): void {
    this.#decompress = undefined
  }

  async #block(): Promise<Block> {
    const head = await this.#pieces.exactly(BLOCK_HEADER)
    const header = blockHeader(head, this.#header.window)
    if (header === undefined) {
      // No header of a block looks like a frame's: there the next frame begins.
      this.#pieces.giveBack(head)
      if (await this.#pieces.areAtHeader()) throw endsEarly()
      await this.#pieces.skip(head.length)
      throw head.length < BLOCK_HEADER ? endsEarly(true) : isDamaged(this.#searchFrom)
    }
    const body = await this.#pieces.exactly(header.length)
    await this.#lookForCut(header, body)
    if (body.length < header.length) throw endsEarly(true)
    return { ...header, head, body }
  }

  /** Throws where another frame begins in the block, unless this one goes on behind it. */
  async #lookForCut(header: BlockHeader, body: Buffer): Promise<void> {
    const { isMember } = this.#options
    if (isMember === undefined) return
    const start = this.#pieces.offset - body.length
    const mayCross = body.includes(ZSTD_HEADER.magic[0]!, Math.max(0, body.length - 3))
    const ahead = mayCross ? await this.#pieces.ahead() : EMPTY
    for (const at of magicsIn(body, ahead)) {
      if (!(await isMember(start + at))) continue
      if (body.length === header.length && (await this.#goesOn(header.isLast))) return
      this.#pieces.giveBack(body.subarray(at))
      throw endsEarly()
    }
  }

  /** Whether blocks of this frame follow or its proper end, so that a frame in a block is its data. */
  async #goesOn(isBehindLast: boolean): Promise<boolean> {
    const pieces = this.#options.again?.(this.#pieces.offset)
    if (pieces === undefined) return true
    let isLast = isBehindLast
    for (let seen = 0; !isLast; seen++) {
      if (seen === TELLING_BLOCKS) return true
      const header = blockHeader(await pieces.exactly(BLOCK_HEADER), this.#header.window)
      if (header === undefined || (await pieces.skip(header.length)) < header.length) return false
      isLast = header.isLast
    }
    const checksum = this.#header.hasChecksum ? CHECKSUM : 0
    return (await pieces.skip(checksum)) === checksum && isBoundary(await pieces.ahead())
  }

  #feed(decompress: Decompress, { head, body, isCompressed }: Block): void {
    try {
      if (isCompressed && isEndless(body)) throw isDamaged(this.#searchFrom)
      // In two parts: of a block that comes whole the library keeps a reference for ever.
      decompress.push(head)
      decompress.push(body)
    } catch {
      throw isDamaged(this.#searchFrom)
    }
  }

  /** Whether no data follows the first block: writers that flush and end add an empty one. */
  async #holdsAll({ isLast }: Block): Promise<boolean> {
    if (isLast || this.#isTrial()) return true
    const next = blockHeader(await this.#pieces.ahead(), this.#header.window)
    return next?.isLast === true && next.isEmpty
  }

  /** The library reserves the window, and moves all of it for each block: no more than is referred to. */
  #begin(isOneBlock: boolean): Decompress {
    const { window, contentSize = window } = this.#header
    const most = isOneBlock ? LARGEST_BLOCK : LARGEST_WINDOW
    const decompress = new this.#library.Decompress((data) => {
      this.#chunk = Buffer.from(data.buffer, data.byteOffset, data.length)
    })
    try {
      decompress.push(plainHeader(Math.min(window, contentSize, most)))
    } catch {
      throw new Damage(
        `needs ${megabytes(window)} of memory, which are not there`,
        this.#searchFrom,
      )
    }
    return decompress
  }

  async #end(): Promise<undefined> {
    const { hasChecksum, contentSize = this.#given } = this.#header
    const checksum = await this.#pieces.exactly(hasChecksum ? CHECKSUM : 0)
    if (hasChecksum && checksum.length < CHECKSUM) throw endsEarly()
    if (this.#unreadable) throw new Damage(this.#unreadable)
    const isRight = !hasChecksum || checksum.readUInt32LE(0) === this.#checksum()
    if (isRight && contentSize === this.#given) return
    const isBehind = isBoundary(await this.#pieces.ahead())
    throw isDamaged(isBehind ? undefined : this.#searchFrom)
  }

  /** The low half of the hash. */
  #checksum(): number {
    return Number(BigInt.asUintN(32, this.#hash.digest()))
  }

  #isTrial(): boolean {
    return this.#options.isMember === undefined
  }
}

function unreadable({ window, contentSize = window, dictionary }: FrameHeader): string | undefined {
  if (dictionary > 0) return `needs dictionary ${dictionary}, and cannot be read without it`
  if (Math.min(window, contentSize) <= LARGEST_WINDOW) return undefined
  return `needs a window of ${megabytes(window)}, more than 128 MB: decompress it with zstd --long=31`
}

function megabytes(bytes: number): string {
  return `${Math.ceil(bytes / 1024 / 1024)} MB`
}
