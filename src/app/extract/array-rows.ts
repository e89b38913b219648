import {
  type Filled,
  hasStructure,
  isEndOfFile,
  isOpening,
  trimmedEnd,
} from '../../core/array-reading.ts'
import { ArrayResync, isClosedEarly } from '../../core/array-resync.ts'
import { ArraySplitter } from '../../core/array-splitter.ts'
import type { ByteReader } from '../../core/byte-reader.ts'
import { ElementLooks } from '../../core/element-looks.ts'
import type { ValueRange } from '../../core/field.ts'
import { isSoundInside } from '../../core/loose-grammar.ts'
import { Effort } from '../../core/search-effort.ts'
import { EXIT, ToolError } from '../../core/tool-error.ts'
import { type Damage, shiftDamage } from './array-damage.ts'
import { ArrayReport } from './array-report.ts'
import { ElementScan } from './element-scan.ts'
import { ElementWatch } from './element-watch.ts'
import { GrowingBuffer } from './growing-buffer.ts'
import type { RowHandler } from './row-handler.ts'

/** Damage without an element behind it is given in pieces of this size at least. */
const LONGEST_DAMAGE = 64 * 1024 * 1024
const COMMA = 0x2c
const OPEN_BRACKET = 0x5b
const CLOSE_BRACKET = 0x5d
const OPEN_BRACE = 0x7b

/** Gives the elements of one JSON array as rows, in memory that holds the longest of them. */
export async function arrayRows(
  reader: ByteReader,
  file: string,
  handler: RowHandler,
): Promise<void> {
  const rows = new ArrayRows(file, handler)
  let damage: ToolError | undefined
  while (!handler.done) {
    const count = await rows.fill(reader).catch((error: unknown) => {
      if (!(error instanceof ToolError) || error.exitCode !== EXIT.data) throw error
      damage = error
      return 0
    })
    rows.split(count === 0)
    await handler.settle()
    if (count === 0) break
    rows.forget()
  }
  if (damage !== undefined) throw damage
}

class ArrayRows {
  #handler: RowHandler
  #report: ArrayReport
  #splitter = new ArraySplitter()
  #watch = new ElementWatch()
  #looks = new ElementLooks()
  #effort = new Effort()
  #scan = new ElementScan()
  #buffer = new GrowingBuffer()
  #at = 0
  #damage: Damage | undefined
  /** Nothing follows what is in the buffer. */
  #isAll = false

  constructor(file: string, handler: RowHandler) {
    this.#handler = handler
    this.#report = new ArrayReport(file, handler)
  }

  /**
   * Reads more; returns how much.
   *
   * @throws ToolError `element-too-long`
   */
  async fill(reader: ByteReader): Promise<number> {
    const count = await this.#buffer.fill(reader)
    if (count >= 0) return count
    throw new ToolError('element-too-long', 'an element of the array is longer than 2 GiB', {
      place: this.#report.fileOnly,
    })
  }

  /** Gives the elements whose end is known; all of them at the end of the file. */
  split(isAll: boolean): void {
    this.#isAll = isAll
    while (!this.#handler.done) {
      const isMore = this.#damage === undefined ? this.#next() : this.#goOn(this.#damage)
      if (!isMore && !(isAll && this.#end())) return
    }
  }

  /** Drops what was given from the buffer. */
  forget(): void {
    const from = this.#damage?.start ?? (this.#splitter.isOpen ? this.#splitter.start : this.#at)
    if (from === 0) return
    this.#looks.keep(this.#bytes)
    this.#buffer.drop(from)
    this.#splitter.shift(from)
    this.#watch.shift(from)
    this.#effort.shift(from)
    this.#report.shift(from)
    if (this.#damage !== undefined) shiftDamage(this.#damage, from)
    this.#at -= from
  }

  get #bytes(): Buffer {
    return this.#buffer.bytes
  }

  get #filled(): number {
    return this.#buffer.filled
  }

  get #view(): Filled {
    return { bytes: this.#bytes, end: this.#filled, isAll: this.#isAll }
  }

  /** Reads on; returns whether there may be more to read. */
  #next(): boolean {
    const splitter = this.#splitter
    const bytes = this.#bytes
    this.#at = splitter.next(bytes, this.#at, Math.min(this.#filled, this.#watch.stop))
    const { found, start } = splitter
    if (found === undefined) return this.#check(start)
    if (found === 'element') this.#element()
    else if (found === 'damage') this.#damaged()
    else if (found === 'missing') this.#report.missing(bytes, start)
    else if (found === 'trailing-comma') this.#report.trailingComma()
    else if (found === 'array') this.#report.anotherArray()
    else {
      this.#report.junk(start)
      this.#lose({ isJunk: true })
    }
    this.#tellNuls()
    this.#watch.begin(this.#at)
    return true
  }

  /** Looks whether the element from `start` is still sound; returns whether there is more to read. */
  #check(start: number): boolean {
    const isDue = this.#at >= this.#watch.stop
    if (this.#splitter.state !== 'container') this.#watch.pass(this.#at)
    else if (this.#watch.isBroken(this.#bytes, start, this.#at)) this.#lose()
    else if (isDue && this.#holdsElement(start)) this.#lose({ isSwallowed: true })
    return this.#at < this.#filled || this.#damage !== undefined
  }

  /** Whether an element that is long, or stands where others had, has lost the end of a list, and taken the array for the list. */
  #holdsElement(start: number): boolean {
    const isSuspect = this.#at - start >= LONGEST_DAMAGE || this.#watch.wasSwallowed(start)
    if (!isSuspect || this.#looks.isEmpty) return false
    const view = { bytes: this.#bytes, end: this.#at, isAll: false }
    return new ArrayResync(view, start, true, this.#looks, this.#effort).findsElement(view)
  }

  #damaged(): void {
    const { isBehindComma, start, end, word, wholeEnd } = this.#splitter
    const member = { start: word, colon: this.#at }
    const isNext = isBehindComma && !isClosedEarly(this.#view, { start, end }, member, this.#looks)
    if (!isNext || !this.#row({ start, end })) return this.#lose({ wholeEnd })
    this.#splitter.start = word
    this.#lose()
  }

  #element(): void {
    const { start, end } = this.#splitter
    if (this.#row({ start, end })) this.#tellLostComma()
    else if (isSoundInside(this.#bytes, start, end)) this.#endsByBrackets({ start, end })
    else this.#lose({ end })
  }

  #tellLostComma(): void {
    if (this.#splitter.lostComma) this.#report.lostComma(this.#at)
    this.#splitter.lostComma = false
  }

  #tellNuls(): void {
    if (this.#splitter.sawNul) this.#report.nuls()
    this.#splitter.sawNul = false
  }

  /** Looks from now on for the next element. */
  #lose({
    end = -1,
    wholeEnd = -1,
    isJunk = false,
    isSwallowed = false,
  }: Partial<Damage> = {}): void {
    const { start } = this.#splitter
    const read = { ...this.#view, end: this.#at }
    const search = new ArrayResync(read, start, !isJunk, this.#looks, this.#effort)
    this.#damage = { start, search, isJunk, end, wholeEnd, noticed: this.#at, isSwallowed }
  }

  /** Looks on for the element behind damage; returns whether there may be more to read. */
  #goOn(damage: Damage): boolean {
    const { search, start, end } = damage
    const found = search.search(this.#view, end < 0 ? Number.MAX_SAFE_INTEGER : end)
    if (found === undefined) return false
    if (found >= 0) {
      this.#resync(damage, found)
      return true
    }
    if (end >= 0) {
      const isBehind = this.#splitter.state === 'behind'
      const isEnd = isBehind
        ? isEndOfFile(this.#view, this.#at)
        : search.mayBegin(this.#view, this.#at)
      if (isEnd === undefined) return false
      damage.end = -1
      if (isEnd) this.#endsByBrackets({ start, end })
      return true
    }
    if (search.from - start > LONGEST_DAMAGE) {
      this.#report.broken(this.#bytes, { start, end: search.from })
      damage.start = search.from
      damage.wholeEnd = -1
      search.giveUp()
    }
    return false
  }

  #endsByBrackets(range: ValueRange): void {
    this.#damage = undefined
    this.#report.broken(this.#bytes, range)
    this.#tellLostComma()
  }

  /** Gives up what is damaged and goes on with the element at `at`. */
  #resync({ start, wholeEnd, noticed, isSwallowed }: Damage, at: number): void {
    const bytes = this.#bytes
    this.#damage = undefined
    this.#splitter.resume()
    this.#splitter.lostComma = false
    this.#watch.noticed(start, at, noticed, isSwallowed)
    this.#watch.begin(at)
    this.#at = at
    let end = trimmedEnd(bytes, start, at)
    const hasComma = end > start && bytes[end - 1] === COMMA
    if (hasComma) end = trimmedEnd(bytes, start, end - 1)
    if (end === start) return
    if (!hasComma && isOpening(bytes, start, end)) return this.#report.between(start)
    // Other bytes in the place of the comma cost neither element.
    const isWhole = wholeEnd >= 0 && !hasStructure(bytes, wholeEnd, at)
    if (isWhole && this.#row({ start, end: wholeEnd })) this.#report.between(wholeEnd)
    else this.#report.broken(bytes, { start, end })
  }

  /** Says what is missing at the end of the file; returns whether there is more to read. */
  #end(): boolean {
    const { state } = this.#splitter
    const range = { start: this.#splitter.start, end: this.#filled }
    this.#tellNuls()
    if (this.#damage !== undefined) {
      if (!this.#damage.isJunk)
        this.#report.broken(this.#bytes, { ...range, start: this.#damage.start })
      return false
    }
    if (this.#splitter.isPending) {
      if (this.#isStrayBracket()) {
        this.#lose()
        return true
      }
      this.#at = this.#splitter.finish(this.#at)
      this.#element()
      return true
    }
    if (state === 'behind') return false
    if (this.#splitter.isOpen && !this.#row(range)) {
      const isBroken = this.#watch.isBrokenAtEnd(this.#bytes, range.start, range.end)
      if (state === 'container' && (isBroken || this.#endsLikeArray())) {
        this.#lose({ isSwallowed: !isBroken })
        return true
      }
      this.#report.cut(this.#bytes, range)
      return false
    }
    this.#report.notClosed()
    return false
  }

  /** Whether the element is a list that took the rest of an array of objects for its own. */
  #isStrayBracket(): boolean {
    return this.#bytes[this.#splitter.start] === OPEN_BRACKET
  }

  /** Whether a list in the element that lost its end may have taken the array's for it. */
  #endsLikeArray(): boolean {
    return this.#bytes[trimmedEnd(this.#bytes, 0, this.#filled) - 1] === CLOSE_BRACKET
  }

  /** Gives the element if it is JSON. */
  #row(range: ValueRange): boolean {
    const { start, end } = range
    const bytes = this.#bytes
    return this.#scan.use(bytes, range, this.#splitter.hasLineFeeds, (scanner) => {
      if (bytes[start] === OPEN_BRACE) this.#looks.add(scanner, bytes, start, end)
      this.#handler.row(scanner, bytes, range, this.#report.place(start))
      this.#report.counted()
    })
  }
}
