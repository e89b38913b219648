const QUOTE = 0x22
const BACKSLASH = 0x5c
const COMMA = 0x2c
const OPEN_BRACKET = 0x5b
const CLOSE_BRACKET = 0x5d
const OPEN_BRACE = 0x7b
const CLOSE_BRACE = 0x7d
const LINE_FEED = 0x0a
const SPACE = 0x20

/** Where the splitter stands between two bytes. */
type ArrayState = 'before' | 'between' | 'inside' | 'behind'

/**
 * Finds the elements of one large JSON array in bytes that come piece by piece. It only matches
 * brackets outside of strings: the one scanner says afterwards whether an element is JSON.
 *
 * Line feeds between tokens become spaces, in place, so that an element is one line. A line feed in a
 * string, which no JSON has, means a lost quote: the element then ends where a line begins like its
 * own, with an opening brace behind as much white space, so that damage costs one element and not
 * the rest of the file.
 */
export class ArraySplitter {
  state: ArrayState = 'before'
  /** Where the element that is being read begins; counted by the caller's offsets. */
  start = 0
  /** Elements that ended so far. */
  count = 0
  /** A comma came last: another element must follow. */
  owesElement = false
  /** Something else than white space stands behind the array. */
  trailing = false

  #closers = new Uint8Array(64)
  #depth = 0
  #inString = false
  #escaped = false
  /** A string of the element holds a line feed: its brackets no longer tell where it ends. */
  #lost = false
  /** White space since the last line feed, -1 behind something else; and before the element. */
  #indent = -1
  #elementIndent = -1

  /**
   * Reads on from `at`.
   *
   * @returns the offset behind the element that ended, before its comma or bracket; -1 when all bytes
   *   up to `end` are read. The next call goes on at that offset.
   */
  next(bytes: Uint8Array, from: number, end: number): number {
    for (let at = from; at < end; at++) {
      const byte = bytes[at]!
      if (this.state === 'inside') {
        if (this.#inString) at = this.#string(bytes, at, end)
        else if (this.#endsBefore(byte)) return this.#endElement(at)
        else this.#structure(bytes, at, byte)
      } else if (isSpace(byte)) this.#countIndent(byte)
      else if (this.state === 'between') {
        if (this.#between(bytes, at, byte)) return at
      } else if (this.state === 'before') {
        if (byte === OPEN_BRACKET) this.state = 'between'
      } else this.trailing = true
    }
    return -1
  }

  #endElement(at: number): number {
    this.state = 'between'
    this.count++
    this.owesElement = false
    this.#lost = false
    return at
  }

  /** Whether the element is over at this byte. */
  #endsBefore(byte: number): boolean {
    if (!this.#lost) return this.#depth === 0 && (byte === COMMA || byte === CLOSE_BRACKET)
    const atLineStart = this.#indent >= 0
    const likeElement = this.#elementIndent < 0 || this.#indent === this.#elementIndent
    const ends =
      atLineStart &&
      ((byte === OPEN_BRACE && likeElement) ||
        (byte === CLOSE_BRACKET && (this.#elementIndent < 0 || this.#indent < this.#elementIndent)))
    if (!ends) this.#countIndent(byte)
    return ends
  }

  #countIndent(byte: number): void {
    if (byte === LINE_FEED) this.#indent = 0
    else if (!isSpace(byte)) this.#indent = -1
    else if (this.#indent >= 0) this.#indent++
  }

  /** Moves the offsets when the caller has moved the bytes. */
  shift(by: number): void {
    this.start -= by
  }

  /** Reads a byte between two elements; returns whether an element that is missing ends there. */
  #between(bytes: Uint8Array, at: number, byte: number): boolean {
    if (byte === CLOSE_BRACKET) {
      this.state = 'behind'
    } else if (byte === COMMA) {
      const missing = this.count === 0 || this.owesElement
      this.owesElement = !missing
      if (!missing) return false
      this.start = at
      this.count++
      return true
    } else {
      this.state = 'inside'
      this.start = at
      this.#depth = 0
      this.#elementIndent = this.#indent
      this.#structure(bytes, at, byte)
    }
    this.#indent = -1
    return false
  }

  #structure(bytes: Uint8Array, at: number, byte: number): void {
    if (this.#lost) return
    if (byte === QUOTE) this.#inString = true
    else if (byte === LINE_FEED) bytes[at] = SPACE
    else if (byte === OPEN_BRACE || byte === OPEN_BRACKET) this.#open(byte + 2)
    else if (byte === CLOSE_BRACE || byte === CLOSE_BRACKET) this.#close(byte)
  }

  /** Reads string content; returns the offset of the last byte read. */
  #string(bytes: Uint8Array, from: number, end: number): number {
    let at = from
    if (this.#escaped) {
      this.#escaped = false
      at++
    }
    for (; at < end; at++) {
      const byte = bytes[at]
      if (byte === BACKSLASH) {
        if (++at === end) this.#escaped = true
      } else if (byte === QUOTE || byte === LINE_FEED) {
        this.#inString = false
        this.#lost = byte === LINE_FEED
        this.#indent = this.#lost ? 0 : -1
        return at
      }
    }
    return end
  }

  #open(closer: number): void {
    if (this.#depth === this.#closers.length) {
      const larger = new Uint8Array(this.#depth * 2)
      larger.set(this.#closers)
      this.#closers = larger
    }
    this.#closers[this.#depth++] = closer
  }

  /** Closes the innermost container of this kind, and what a broken element left open inside it. */
  #close(closer: number): void {
    let depth = this.#depth
    while (depth > 0 && this.#closers[depth - 1] !== closer) depth--
    if (depth > 0) this.#depth = depth - 1
  }
}

function isSpace(byte: number): boolean {
  return byte === SPACE || byte === LINE_FEED || byte === 0x0d || byte === 0x09
}
