const QUOTE = 0x22
const BACKSLASH = 0x5c
const COMMA = 0x2c
const COLON = 0x3a
const OPEN_BRACKET = 0x5b
const CLOSE_BRACKET = 0x5d
const OPEN_BRACE = 0x7b
const CLOSE_BRACE = 0x7d
const LINE_FEED = 0x0a

/** What may come next: a key, its colon, a value, or what follows a value. */
type Expected = 'key' | 'colon' | 'value' | 'after'

/**
 * JSON whose strings and brackets are sound, whatever else is wrong: any words for values and keys
 * (`NaN`, `None`, `1.`), values left out, commas too many, anything inside a string. What a lost quote
 * or bracket shifts does not go on so for long: strings then stand beside words and other strings.
 */
export class LooseGrammar {
  /** The value has ended. */
  complete = false
  #closers: number[] = []
  #expected: Expected = 'value'
  /** The key or value before was a word: it may go on. */
  #isWord = false
  #inString = false
  #escaped = false

  /**
   * Reads on.
   *
   * @returns the offset of a byte that does not fit, -1 where all do
   */
  feed(bytes: Uint8Array, from: number, end: number): number {
    for (let at = from; at < end; at++) {
      const byte = bytes[at]!
      const fits = this.#inString ? this.#stringByte(byte) : isFraming(byte) || this.#token(byte)
      if (!fits) return at
    }
    return -1
  }

  #stringByte(byte: number): boolean {
    if (this.#escaped) this.#escaped = false
    else if (byte === BACKSLASH) this.#escaped = true
    else if (byte === QUOTE) {
      this.#inString = false
      this.#taken(false)
    }
    return byte !== LINE_FEED
  }

  #token(byte: number): boolean {
    if (this.complete) return false
    const expected = this.#expected
    switch (byte) {
      case QUOTE:
        this.#inString = true
        return expected === 'key' || expected === 'value'
      case OPEN_BRACE:
      case OPEN_BRACKET:
        this.#closers.push(byte + 2)
        this.#expectInside()
        return expected === 'value'
      case CLOSE_BRACE:
      case CLOSE_BRACKET:
        return expected !== 'colon' && this.#close(byte)
      case COMMA:
        this.#expectInside()
        return expected !== 'colon'
      case COLON:
        this.#expected = 'value'
        return expected === 'colon'
      default:
        return this.#word()
    }
  }

  #word(): boolean {
    if (this.#expected === 'colon' || this.#expected === 'after') return this.#isWord
    this.#taken(true)
    return true
  }

  /** A key or a scalar has come. */
  #taken(isWord: boolean): void {
    this.#expected = this.#expected === 'key' ? 'colon' : 'after'
    this.#isWord = isWord
  }

  #expectInside(): void {
    this.#expected = this.#closers.at(-1) === CLOSE_BRACE ? 'key' : 'value'
  }

  #close(byte: number): boolean {
    if (this.#closers.pop() !== byte) return false
    this.#expected = 'after'
    this.#isWord = false
    this.complete = this.#closers.length === 0
    return true
  }
}

function isFraming(byte: number): boolean {
  return byte <= 0x20
}

/** Whether the brackets of what lies between the offsets are to be trusted, though it is no JSON. */
export function isSoundInside(bytes: Uint8Array, start: number, end: number): boolean {
  const grammar = new LooseGrammar()
  return grammar.feed(bytes, start, end) < 0 && grammar.complete
}
