import { isFraming } from './array-reading.ts'

const QUOTE = 0x22
const BACKSLASH = 0x5c
const COMMA = 0x2c
const OPEN_BRACKET = 0x5b
const CLOSE_BRACKET = 0x5d
const OPEN_BRACE = 0x7b
const CLOSE_BRACE = 0x7d
const LINE_FEED = 0x0a

/** Where the splitter stands between two bytes. */
type ArrayState =
  | 'before' // the array has not begun
  | 'first' // behind the opening bracket
  | 'element' // an element must begin
  | 'scalar'
  | 'container'
  | 'after' // behind an element: a comma or the end
  | 'comma' // behind that comma
  | 'word' // in a string behind that comma
  | 'colon' // behind that string
  | 'behind' // behind the array

/** What the splitter stopped for. */
export type Found =
  | 'element'
  | 'missing' // a comma where an element should be
  | 'trailing-comma'
  | 'damage' // what began at `start` is no element of an undamaged array
  | 'array' // another array behind the first
  | 'junk' // something else behind the array

/**
 * Finds the elements of one large JSON array in bytes that come piece by piece. It only matches
 * brackets outside of strings: the one scanner says afterwards whether an element is JSON, and
 * array-resync.ts where to go on behind damage.
 *
 * An element is given when it is known what follows it: a string behind its comma that is no element,
 * as in `"key":`, may mean that it was closed too early, and is half of what was written.
 */
export class ArraySplitter {
  state: ArrayState = 'before'
  found: Found | undefined
  /** Where the element begins and ends that is being read or was found last. */
  start = 0
  end = 0
  /** The element has line feeds between its tokens. */
  hasLineFeeds = false
  /** The comma before the element that is being read is lost. */
  lostComma = false
  /** A run of NULs stood between two elements. */
  sawNul = false

  /** Where the string begins that follows the element's comma. */
  word = 0

  #closers = new Uint8Array(64)
  #depth = 0
  #inString = false
  #escaped = false

  /**
   * Reads on from `from`, and says in `found` what it stopped for.
   *
   * @returns the offset where the next call goes on
   */
  next(bytes: Uint8Array, from: number, end: number): number {
    this.found = undefined
    let at = from
    while (at < end && this.found === undefined) {
      if (this.#inString) at = this.#string(bytes, at, end)
      else if (this.state === 'container') at = this.#container(bytes, at, end)
      else if (this.state === 'scalar') at = this.#scalar(bytes, at, end)
      else if (isFraming(bytes[at]!)) {
        if (bytes[at] === 0) this.sawNul = true
        at++
      } else at = this.#token(bytes[at]!, at)
    }
    return at
  }

  /** Whether bytes from `start` on are still needed. */
  get isOpen(): boolean {
    return !IDLE.has(this.state)
  }

  /** Whether the damage found last stands behind a comma. */
  get isBehindComma(): boolean {
    return BEHIND_COMMA.has(this.state)
  }

  /** Whether an element is whole that was not given, since nothing follows it. */
  get isPending(): boolean {
    return this.state === 'after' ? !this.#inString : BEHIND_COMMA.has(this.state)
  }

  /** Where a whole value ends that the damage found last comes behind, or -1. */
  get wholeEnd(): number {
    return this.isPending ? this.end : -1
  }

  /**
   * Gives the element that is pending at the end of the file.
   *
   * @returns the offset where the next call goes on
   */
  finish(at: number): number {
    this.found = 'element'
    const isWord = this.state === 'word' || this.state === 'colon'
    this.#become('element')
    return isWord ? this.word : at
  }

  /** Moves the offsets when the caller has moved the bytes. */
  shift(by: number): void {
    this.start -= by
    this.end -= by
    this.word -= by
  }

  /** Goes on where an element begins. */
  resume(): void {
    this.#become('element')
  }

  #become(state: ArrayState): void {
    this.state = state
    this.#inString = false
    this.#escaped = false
  }

  /** Reads a byte between two elements. */
  #token(byte: number, at: number): number {
    switch (this.state) {
      case 'before':
        if (byte === OPEN_BRACKET) this.state = 'first'
        return at + 1
      case 'first':
      case 'element':
        return this.#element(byte, at)
      case 'after':
        return this.#after(byte, at)
      case 'comma':
        return this.#behindComma(byte, at)
      case 'colon':
        if (byte === COMMA || byte === CLOSE_BRACKET) return this.#give(this.word)
        this.found = 'damage'
        return at
      default:
        this.found = byte === OPEN_BRACKET ? 'array' : 'junk'
        if (byte === OPEN_BRACKET) this.state = 'first'
        else this.start = at
        return at + 1
    }
  }

  #element(byte: number, at: number): number {
    if (byte === COMMA) {
      this.found = 'missing'
      this.start = at
      this.state = 'element'
      return at + 1
    }
    if (byte === CLOSE_BRACKET) {
      if (this.state === 'element') this.found = 'trailing-comma'
      this.state = 'behind'
      return at + 1
    }
    this.start = at
    this.hasLineFeeds = false
    this.#depth = 0
    this.#inString = byte === QUOTE
    if (this.#inString) this.state = 'after'
    else this.state = byte === OPEN_BRACE || byte === OPEN_BRACKET ? 'container' : 'scalar'
    return this.#inString ? at + 1 : at
  }

  #after(byte: number, at: number): number {
    if (byte === COMMA) {
      this.state = 'comma'
      return at + 1
    }
    if (byte === CLOSE_BRACKET) {
      this.found = 'element'
      this.state = 'behind'
      return at + 1
    }
    if (byte === OPEN_BRACE) {
      this.lostComma = true
      return this.#give(at)
    }
    this.found = 'damage'
    return at
  }

  #behindComma(byte: number, at: number): number {
    if (byte !== QUOTE) return this.#give(at)
    this.word = at
    this.state = 'word'
    this.#inString = true
    return at + 1
  }

  /** Gives the element; another begins at `at`. */
  #give(at: number): number {
    this.found = 'element'
    this.#become('element')
    return at
  }

  #scalar(bytes: Uint8Array, from: number, end: number): number {
    let at = from
    while (at < end && bytes[at] !== COMMA && bytes[at] !== CLOSE_BRACKET) at++
    if (at === end) return at
    this.end = at
    while (this.end > this.start && isSpace(bytes[this.end - 1]!)) this.end--
    this.state = 'after'
    return at
  }

  /** Reads structure up to a string, the element's end, or damage. */
  #container(bytes: Uint8Array, from: number, end: number): number {
    for (let at = from; at < end; at++) {
      const byte = bytes[at]!
      if (byte === QUOTE) {
        this.#inString = true
        return at + 1
      }
      if (byte === LINE_FEED) this.hasLineFeeds = true
      else if (byte === OPEN_BRACE || byte === OPEN_BRACKET) this.#open(byte + 2)
      else if (byte === CLOSE_BRACE || byte === CLOSE_BRACKET) {
        if (this.#closers[--this.#depth] !== byte) {
          this.found = 'damage'
          return at
        }
        if (this.#depth > 0) continue
        this.end = at + 1
        this.state = 'after'
        return at + 1
      }
    }
    return end
  }

  /** Reads string content to behind its quote; a line feed in it, which no JSON has, is damage. */
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
      } else if (byte === QUOTE) {
        this.#inString = false
        if (this.state === 'word') this.state = 'colon'
        else if (this.state === 'after') this.end = at + 1
        return at + 1
      } else if (byte === LINE_FEED) {
        this.found = 'damage'
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
}

const BEHIND_COMMA: ReadonlySet<ArrayState> = new Set(['comma', 'word', 'colon'])
const IDLE: ReadonlySet<ArrayState> = new Set(['before', 'first', 'element', 'behind'])

function isSpace(byte: number): boolean {
  return byte === 0x20 || byte === LINE_FEED || byte === 0x0d || byte === 0x09
}
